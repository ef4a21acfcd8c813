import { camelCase, snakeCase } from '@tapetree/session/util/json'

/** A value of the wire with its members in camelCase. */
export type FromWire<T> = T extends readonly (infer Item)[]
  ? FromWire<Item>[]
  : T extends object
    ? { [Name in keyof T as CamelCase<Name>]: FromWire<T[Name]> }
    : T

export type CamelCase<Name> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name

/** Renames the members at every level. Values of foreign members, such as the input of a tool, stay as they are. */
export function fromWire<T>(value: T, foreign?: ReadonlySet<string>): FromWire<T> {
  return renamed(value, camelCase, foreign) as FromWire<T>
}

/** The reverse of `fromWire`. */
export function toWire(value: unknown): unknown {
  return renamed(value, snakeCase)
}

function renamed(value: unknown, nameOf: (name: string) => string, foreign?: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, nameOf, foreign))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      nameOf(name),
      foreign?.has(name) ? inner : renamed(inner, nameOf, foreign),
    ]),
  )
}
