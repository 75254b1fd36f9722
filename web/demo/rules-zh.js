// @ts-check
/** The Chinese rules: patterns for statements, questions, corrections and the details of bookings. */

/**
 * @typedef {import("./rules.js").Clause} Clause
 * @typedef {import("./rules.js").Grammar} Grammar
 */

const NOT_NAMES = /^(?:学生|老师|医生|工程师|中国人|美国人|男|女|一|个|谁|说|想|要|在|从|来|不|很|真|的|新|素食|什么)/;

const DAY =
  "(?:(?:下下?|这|本)?(?:周|星期|礼拜)[一二三四五六日天]|大后天|后天|明天|今天|今晚|明晚|下周|下个月|\\d{4}-\\d{2}-\\d{2}" +
  "|(?:\\d{1,2}|[一二三四五六七八九十]{1,3})月(?:\\d{1,2}|[一二三四五六七八九十]{1,3})[日号])";
const TOWN = "([\\p{Script=Han}A-Za-z]{2,12}?)";

/** @type {[name: string, pattern: RegExp][]} */
const BOOKINGS = [
  ["book_flight", /机票|航班|飞机/],
  ["book_train", /火车|高铁|动车|车票/],
  ["book_hotel", /酒店|宾馆|房间/],
  ["book_table", /餐厅|饭店|桌|位子|餐位/],
  ["book_taxi", /出租车|的士|打车|专车/],
];

/** @type {[topic: string, pattern: RegExp][]} */
const TOPICS = [
  ["name", /名字|姓名|叫什么|我是谁/],
  ["address", /地址|住哪|住在|住址/],
  ["booking", /订|机票|航班|酒店|火车|高铁|行程|旅行|餐厅/],
  ["preference", /喜欢|偏好|讨厌|口味|喜好|不要|爱吃|爱喝/],
  ["picture", /图片|照片|图像/],
  ["place", /地点|位置|在哪/],
];

/** @param {string} text */
const bare = (text) =>
  text
    .trim()
    .replace(/^(?:是|改成|改为|应该是|：|:)\s*/, "")
    .replace(/(?:吧|哦|啊|呀|了|谢谢)?[\s。，,.!！；;]*$/, "")
    .trim();

/** @param {string} text */
const key = (text) => text.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim().slice(0, 60);

/** What a preference is about: 靠窗的座位 is about 座位. @param {string} text */
const head = (text) => key(text.match(/的(.+)$/)?.[1] ?? text.match(/(座位?|位|房间?|茶|咖啡|餐)$/)?.[1] ?? text).replace(/^座$/, "座位");

/**
 * @param {string} object
 * @param {boolean} likes
 * @param {string} [slot]
 * @param {Record<string, string>} [more]
 * @returns {Clause}
 */
function preference(object, likes, slot, more = {}) {
  const value = bare(object);
  return {
    act: "prefer",
    facts: [{ name: "preference", key: slot ?? key(value), entities: { object: value, likes, ...more }, confidence: 1 }],
  };
}

/** @param {string} clause @returns {Record<string, string>} */
function slots(clause) {
  /** @type {Record<string, string>} */
  const found = {};
  /** @param {string} slot @param {RegExp} pattern */
  const take = (slot, pattern) => {
    const match = clause.match(pattern);
    if (match?.[1]) found[slot] = match[1].trim();
  };
  const end = `(?=的|${DAY}|机票|航班|酒店|火车|高铁|出租|[，,。.！!\\s]|$)`;
  take("departure", new RegExp(`(?:从|由)\\s*${TOWN}\\s*(?=飞|去|到|出发|[，,。\\s]|$)`, "u"));
  take("destination", new RegExp(`(?:飞往|飞到|飞|前往|去|到)\\s*${TOWN}\\s*${end}`, "u"));
  take("date", new RegExp(`(${DAY})`, "u"));
  take("time", /((?:上午|下午|早上|晚上|中午)?(?:\d{1,2}|[一二三四五六七八九十]{1,3})点半?)/);
  take("people", /((?:\d+|[一二两三四五六七八九十]))\s*(?:个人|人|位)/);
  take("place", new RegExp(`在\\s*${TOWN}\\s*(?=订|预订|预定|的|住|${end.slice(3)}`, "u"));
  return found;
}

/** @param {string} clause @returns {Clause | null} */
function booking(clause) {
  if (!/订|预定|买|叫|打/.test(clause)) return null;
  const kind = BOOKINGS.find(([, pattern]) => pattern.test(clause));
  if (!kind) return null;
  const entities = slots(clause);
  const slot = key(Object.values(entities).join(" ")) || "open";
  return { act: "book", facts: [{ name: kind[0], key: slot, entities, confidence: 1 }] };
}

/** @param {string} clause @returns {Clause | null} */
function introduction(clause) {
  const match =
    clause.match(/(?:我叫做?|我的名字(?:是|叫)|我名叫|请?叫我|我的姓名是)\s*([\p{L}·]+(?: \p{Lu}\p{L}*)*)/u) ??
    clause.match(/^(?:(?:你好|您好|嗨)[，,！!。\s]*)?我是\s*([\p{Script=Han}]{2,4}|\p{Lu}\p{L}+)$/u);
  const name = match?.[1].replace(/(?:吧|哦|啊|呀)$/, "");
  if (!name || NOT_NAMES.test(name)) return null;
  return { act: "introduce", facts: [{ name: "name", key: "name", entities: { name }, confidence: 1 }] };
}

/** @param {string} clause @returns {Clause | null} */
function addressed(clause) {
  const own = clause.match(/我?(?:的)?(收货|快递|邮寄|家庭|家|公司|单位|电子邮件|邮箱)?的?(?:地址|住址)(?:改)?(?:是|在|为|：|:)\s*(.+)/);
  const lives = clause.match(/我(?:现在)?(?:住在|住|搬到了?|家在)\s*(.+)/);
  const address = bare(own?.[2] ?? lives?.[1] ?? "");
  if (!address) return null;
  /** @type {Record<string, string>} */
  const kinds = { 收货: "delivery", 快递: "delivery", 邮寄: "delivery", 公司: "work", 单位: "work", 电子邮件: "email", 邮箱: "email" };
  return { act: "address", facts: [{ name: "address", key: kinds[own?.[1] ?? ""] ?? "home", entities: { address }, confidence: 1 }] };
}

/** @param {string} clause @returns {Clause | null} */
function preferred(clause) {
  let match = clause.match(/我最(?:喜欢|爱)的(.+?)是(.+)/);
  if (match) return preference(match[2], true, `favourite ${key(match[1])}`, { about: match[1] });
  match = clause.match(/我(?:其实|真的|也|都|从来)?(?:不太?喜欢|不爱|讨厌|不想要|不要|不吃|不喝|不想)(?:要|吃|喝)?(.+)/);
  if (match) return preference(match[1], false);
  match = clause.match(/我对(.+?)过敏/);
  if (match) return preference(match[1], false, undefined, { why: "allergy" });
  match = clause.match(/我(?:还是)?(?:更喜欢|更爱|比较喜欢|偏好|偏爱|想要)(.+)/);
  if (match) return preference(match[1], true, head(bare(match[1])));
  match = clause.match(/我(?:最|很|非常|特别|也|都|真的)?(?:喜欢|爱)(.+)/);
  if (match) return preference(match[1], true);
  match = clause.match(/^(?:请)?(?:不要|别)(?:再)?(.+)/);
  if (match) return preference(match[1], false, undefined, { wish: "yes" });
  return null;
}

/** @param {string} clause @returns {Clause | null} */
function told(clause) {
  const match = clause.match(/我(?:的|家的?)([^是叫，,]{1,10}?)(?:是|叫)(.+)/);
  if (!match) return null;
  return { act: "tell", facts: [{ name: "fact", key: key(match[1]), entities: { about: match[1], value: bare(match[2]) }, confidence: 1 }] };
}

const NO = "(?:不对|不是的?|错了|说错了|你?记错了|更正一?下?|纠正一?下?|等等)";

/** @type {Grammar} */
export const chinese = {
  bare,
  slots,
  hedged: (clause) => /可能|也许|好像|大概|应该是吧|不确定/.test(clause),

  clauses: (text) =>
    text
      .split(/(?<=[。！!？?；;])\s*|\n+|[，,]\s*(?=(?:也|而且|并且|另外)?我(?:叫|是|喜欢|最|不|更|讨厌|住|的|想|要|对))/)
      .map((part) => part.replace(/^(?:另外|而且|并且|还有)[，,]?/, "").trim())
      .filter(Boolean)
      .reduce((/** @type {string[]} */ parts, part) => {
        const before = parts.at(-1);
        if (before && new RegExp(`^(?:${NO}|不|其实)[，,。！!]?$`).test(before)) parts[parts.length - 1] = `${before}，${part}`;
        else parts.push(part);
        return parts;
      }, []),

  correction(clause) {
    const match =
      clause.match(new RegExp(`^${NO}[，,：:、。！!\\s]+(?:其实|应该)?(?:是|改成|改为)?(.+)`)) ??
      clause.match(/^不[，,、\s]+(?:其实|应该)?(?:是|改成|改为)?(.+)/) ??
      clause.match(/^(?:其实|应该)[，,]?(?:是|改成|改为)(.+)/) ??
      clause.match(/^(?:改成|改为)(.+)/);
    if (!match || /[?？]$/.test(clause)) return null;
    return match[1].trim();
  },

  question(clause) {
    const text = clause.replace(/[?？!！。.\s]+$/, "").replace(/^(?:请问|那么?|好的?|嗯)[，,\s]*/, "");
    const about =
      text.match(/^(?:关于|对于?)(.+?)[，,\s]*你(?:还|都)?(?:记得|知道|记住了?)(?:些|了)?(?:什么|哪些|多少|吗|么)?$/) ??
      text.match(/^你(?:还|都)?(?:记得|知道|记住了?)(?:些)?(?:什么|哪些)?(?:关于)?(.*?)(?:的?(?:什么|哪些|事情?))?(?:吗|么|呢)?$/);
    const asks = about ?? (/[?？]\s*$/.test(clause) || /(?:吗|么|呢)$/.test(text) || /什么|哪里|哪儿|哪个|哪些|几点|多少|我是谁|住哪|为什么|怎么/.test(text));
    if (!asks) return null;
    const subject = about ? about[1].replace(/^关于/, "").replace(/的(?:事情?|信息)?$/, "").trim() : text;
    if (/^(?:我|我们|一切|所有)?$/.test(subject)) return { act: "ask", topic: "all", about: "" };
    const topic = TOPICS.find(([, pattern]) => pattern.test(subject))?.[0] ?? null;
    return { act: "ask", topic, about: subject.replace(/^我的/, "") };
  },

  statement(clause) {
    const found =
      booking(clause) ?? preferred(clause) ?? addressed(clause) ?? introduction(clause) ?? told(clause);
    if (found?.facts?.every((fact) => Object.values(fact.entities).every((value) => value !== ""))) return found;
    if (/^(?:你好|您好|嗨|哈喽|早上好|晚上好|下午好)/.test(clause)) return { act: "greet" };
    if (/^(?:谢谢|多谢|感谢)/.test(clause)) return { act: "thank" };
    return null;
  },
};
