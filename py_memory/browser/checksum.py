"""SQLite's log checksum at the speed of the machine: a WebAssembly module of 231 bytes.

Measured in Chromium for one frame of 4,120 bytes: plain Python 300-470 µs, this 0.9 µs with the
copying, 29 µs for a call with nine frames; reading a log of 12,500 frames takes 15 ms in all. It needs
no more leave from a content security policy than Pyodide itself ('wasm-unsafe-eval').
"""

from py_memory.image.log import CHUNK_BYTES, Chain

_MODULE = """
    00 61 73 6d 01 00 00 00                        # magic and version
    01 09 01 60 04 7f 7f 7f 7f 01 7f               # type: (count, size, s0, s1) -> frames
    03 02 01 00                                    # one function
    05 04 01 01 10 10                              # memory that never grows: views on it stay
    07 09 02 01 6d 02 00 01 66 00 00               # exports: memory "m", function "f"
    0a bc 01 01 b9 01                              # code
    01 04 7f                                       # 4 more locals: index, p, end, frame
    02 40                                          # block
    03 40                                          #   loop: each frame
    20 04 20 00 4f 0d 01                           #     if index >= count: leave
    20 07 21 05                                    #     p = frame
    20 02 20 05 28 02 00 6a 20 03 6a 21 02         #     s0 += load(p + 0) + s1
    20 03 20 05 28 02 04 6a 20 02 6a 21 03         #     s1 += load(p + 4) + s0
    20 07 20 01 6a 21 06                           #     end = frame + size
    20 07 41 18 6a 21 05                           #     p = frame + 24
    03 40                                          #     loop: each 8 bytes
    20 02 20 05 28 02 00 6a 20 03 6a 21 02         #       s0 += load(p + 0) + s1
    20 03 20 05 28 02 04 6a 20 02 6a 21 03         #       s1 += load(p + 4) + s0
    20 05 41 08 6a 22 05 20 06 49 0d 00            #       p += 8; again while p < end
    0b                                             #     end
    20 02 20 07 28 02 10 41 08 77 41 ff 81 fc 07 71 20 07 28 02
    10 41 18 77 41 80 fe 83 78 71 72 47 0d 01      #     if s0 != big_endian(frame + 16): leave
    20 03 20 07 28 02 14 41 08 77 41 ff 81 fc 07 71 20 07 28 02
    14 41 18 77 41 80 fe 83 78 71 72 47 0d 01      #     if s1 != big_endian(frame + 20): leave
    20 06 21 07                                    #     frame = end
    20 04 41 01 6a 21 04                           #     index += 1
    0c 00                                          #     again
    0b 0b                                          #   end; end
    20 04 0b                                       # index"""


def module_bytes() -> bytes:
    """Return the module: the hexadecimal digits above without their comments."""
    return bytes.fromhex("".join(line.split("#")[0] for line in _MODULE.splitlines()))


def fast_chain() -> Chain:
    """Compile the module and return it as the log reader's way to verify frames."""
    import js
    from pyodide.ffi import to_js

    module = js.WebAssembly.Module.new(to_js(module_bytes()))
    exports = js.WebAssembly.Instance.new(module).exports
    memory = js.Uint8Array.new(exports.m.buffer)
    holding = exports.f

    def chain(frames: memoryview, frame_bytes: int, s0: int, s1: int) -> int:
        if len(frames) > CHUNK_BYTES:
            message = "The log was read in larger pieces than the checksum module has memory for."
            raise ValueError(message)
        memory.subarray(0, len(frames)).assign(frames)
        return int(holding(len(frames) // frame_bytes, frame_bytes, s0, s1))

    return chain
