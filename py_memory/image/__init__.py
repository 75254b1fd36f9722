"""The durable image of a database: its pages, read from the write-ahead log after each commit."""
