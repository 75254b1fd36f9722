// @ts-check
/** Facts for people: the name of a fact and its value, in the language asked for. */
import { isBooking } from "./rules.js";
import { translate } from "./strings.js";

/**
 * @typedef {import("./rules.js").Language} Language
 * @typedef {{name: string, key: string | null, entities: Record<string, any>}} Stated
 */

/** @param {Stated} fact @param {Language} language @returns {string} */
export function label({ name, key, entities }, language) {
  if (name === "fact") {
    const about = String(entities.about ?? key ?? "");
    return about.charAt(0).toUpperCase() + about.slice(1);
  }
  if (name === "address") return translate(language, `fact.address.${key}`, {}, "fact.address.home");
  if (name === "preference" && entities.about) return translate(language, "fact.favourite", { about: entities.about });
  return translate(language, `fact.${name}`, {}, "fact.fact");
}

/** @param {Stated} fact @param {Language} language @returns {string} */
export function value({ name, entities }, language) {
  if (isBooking(name)) return trip(entities, language);
  if (name === "preference") {
    if (entities.about) return String(entities.object);
    const key = entities.wish ? "value.wish" : entities.why ? "value.allergy" : entities.likes ? "value.likes" : "value.dislikes";
    return translate(language, key, { object: entities.object });
  }
  if (name === "place") {
    const point = `${Number(entities.lat).toFixed(4)}, ${Number(entities.lng).toFixed(4)}`;
    return entities.label ? `${entities.label} (${point})` : point;
  }
  const single = entities.name ?? entities.address ?? entities.value;
  return single === undefined ? Object.values(entities).join(", ") : String(single);
}

/** @param {Record<string, any>} entities @param {Language} language */
function trip({ departure, destination, place, people, date, time }, language) {
  const route = departure || destination ? [departure ?? "?", destination ?? "?"].join(" → ") : "";
  const persons = people ? translate(language, "value.people", { people }) : "";
  return [route, place, persons, date, time].filter(Boolean).join(", ");
}
