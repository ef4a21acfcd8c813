import type { SchemaIssue as Issue } from '@tapetree/session/util/structured-answer'

/** Every issue of a value; none if it is valid. */
export type JsonSchemaCheck = (value: unknown) => Issue[]

/**
 * Compiles a JSON Schema (2020-12) into a synchronous check. Throws a sentence for a malformed schema and for keywords that it
 * cannot enforce. Values are never changed: `default` and `format` are annotations, as the specification says.
 */
export function jsonSchemaCheck(schema: unknown): JsonSchemaCheck {
  const check = new Compiler(schema).compile(schema, '#')
  return (value) => check(value, [])
}

type Path = readonly PropertyKey[]
type Check = (value: unknown, path: Path) => Issue[]
type Members = Readonly<Record<string, unknown>>

interface Keyword {
  /** The value of the keyword. */
  argument: unknown
  /** The schema that it stands in. */
  schema: Members
  /** Its place, as a JSON pointer. */
  at: string
  compiler: Compiler
}

class Compiler {
  readonly #root: unknown
  /** By pointer. A reference is resolved once, and may lead back to a schema that is still being compiled. */
  readonly #references = new Map<string, Check>()

  constructor(root: unknown) {
    this.#root = root
  }

  compile(schema: unknown, at: string): Check {
    if (schema === true) return () => []
    if (schema === false) return (_, path) => [{ message: 'Nothing is allowed here', path }]
    const members = membersOf(schema, at)
    const checks = Object.entries(members).flatMap(([name, argument]) => {
      if (unsupported.has(name)) throw new TypeError(`"${name}" at ${at} is not supported.`)
      const keyword = Object.hasOwn(keywords, name) ? keywords[name] : undefined
      return keyword ? [keyword({ argument, schema: members, at: `${at}/${name}`, compiler: this })] : []
    })
    return (value, path) => checks.flatMap((check) => check(value, path))
  }

  reference(pointer: unknown, at: string): Check {
    if (typeof pointer !== 'string' || !/^#(?:\/|$)/.test(pointer))
      throw new TypeError(`${at} must refer to the same schema, such as "#/$defs/name".`)
    if (!this.#references.has(pointer)) {
      let resolved: Check | undefined
      this.#references.set(pointer, (value, path) => resolved?.(value, path) ?? [])
      resolved = this.compile(this.#find(pointer, at), pointer)
    }
    return this.#references.get(pointer) as Check
  }

  #find(pointer: string, at: string): unknown {
    const steps = decodeURIComponent(pointer).split('/').slice(1)
    return steps.reduce<unknown>((place, step) => {
      const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
      if (typeof place !== 'object' || place === null || !Object.hasOwn(place, name))
        throw new TypeError(`${at} refers to ${pointer}, which does not exist.`)
      return (place as Members)[name]
    }, this.#root)
  }
}

/** Ignoring one of these would let an invalid value pass. Keywords in neither table are annotations. */
const unsupported = new Set([
  '$anchor',
  '$dynamicRef',
  '$recursiveRef',
  'dependencies',
  'unevaluatedItems',
  'unevaluatedProperties',
])

const keywords: Record<string, (keyword: Keyword) => Check> = {
  $ref: ({ argument, at, compiler }) => compiler.reference(argument, at),

  type: ({ argument, at }) => {
    const names = (Array.isArray(argument) ? argument : [argument]) as unknown[]
    const unknown = names.find((name) => !typeNames.has(name))
    if (unknown !== undefined || names.length === 0) throw new TypeError(`${at} is not a type: ${String(unknown)}.`)
    const message = `Invalid input: expected ${names.join(' or ')}, received `
    return (value, path) => {
      const type = typeOf(value)
      const isValid = names.includes(type) || (names.includes('integer') && Number.isInteger(value))
      return isValid ? [] : [{ message: message + type, path }]
    }
  },
  const: ({ argument }) => oneOfValues([argument]),
  enum: ({ argument, at }) => oneOfValues(listOf(argument, at)),

  allOf: (keyword) => {
    const checks = alternatives(keyword)
    return (value, path) => checks.flatMap((check) => check(value, path))
  },
  anyOf: (keyword) => {
    const checks = alternatives(keyword)
    return (value, path) => {
      const failures = failuresOf(checks, value, path)
      return failures.length < checks.length ? [] : noneFits(failures, path)
    }
  },
  oneOf: (keyword) => {
    const checks = alternatives(keyword)
    return (value, path) => {
      const failures = failuresOf(checks, value, path)
      const fitting = checks.length - failures.length
      if (fitting === 0) return noneFits(failures, path)
      return fitting === 1 ? [] : [{ message: `Matches ${fitting} alternatives, but must match exactly one`, path }]
    }
  },
  not: ({ argument, at, compiler }) => {
    const check = compiler.compile(argument, at)
    return (value, path) => (check(value, path).length > 0 ? [] : [{ message: 'Matches an excluded schema', path }])
  },
  if: ({ argument, schema, at, compiler }) => {
    const condition = compiler.compile(argument, at)
    const whenTrue = compiler.compile(schema['then'] ?? true, `${at}/../then`)
    const whenFalse = compiler.compile(schema['else'] ?? true, `${at}/../else`)
    return (value, path) => (condition(value, path).length === 0 ? whenTrue : whenFalse)(value, path)
  },

  properties: ({ argument, at, compiler }) => {
    const checks = checksOf(argument, at, compiler)
    return ofObjects((value, path) =>
      checks.flatMap(([name, check]) => (Object.hasOwn(value, name) ? check(value[name], [...path, name]) : [])),
    )
  },
  patternProperties: ({ argument, at, compiler }) => {
    const checks = checksOf(argument, at, compiler).map(([source, check]) => [patternOf(source, at), check] as const)
    return ofObjects((value, path) =>
      Object.entries(value).flatMap(([name, member]) =>
        checks.flatMap(([pattern, check]) => (pattern.test(name) ? check(member, [...path, name]) : [])),
      ),
    )
  },
  additionalProperties: ({ argument, schema, at, compiler }) => {
    const check = compiler.compile(argument, at)
    const named = schema['properties'] === undefined ? {} : membersOf(schema['properties'], at)
    const patterns = Object.keys(membersOf(schema['patternProperties'] ?? {}, at)).map((each) => patternOf(each, at))
    return ofObjects((value, path) => {
      const rest = Object.entries(value).filter(
        ([name]) => !Object.hasOwn(named, name) && !patterns.some((pattern) => pattern.test(name)),
      )
      if (argument !== false) return rest.flatMap(([name, member]) => check(member, [...path, name]))
      return rest.map(([name]) => ({ message: `Unrecognized key: "${name}"`, path }))
    })
  },
  propertyNames: ({ argument, at, compiler }) => {
    const check = compiler.compile(argument, at)
    return ofObjects((value, path) =>
      Object.keys(value).flatMap((name) =>
        check(name, path).map(({ message }) => ({ message: `Invalid key "${name}": ${message}`, path })),
      ),
    )
  },
  required: ({ argument, at }) => {
    const names = namesOf(argument, at)
    return ofObjects((value, path) => missingKeys(value, names, path))
  },
  dependentRequired: ({ argument, at }) => {
    const needed = Object.entries(membersOf(argument, at)).map(([name, names]) => [name, namesOf(names, at)] as const)
    return ofObjects((value, path) =>
      needed.flatMap(([name, names]) => (Object.hasOwn(value, name) ? missingKeys(value, names, path) : [])),
    )
  },
  dependentSchemas: ({ argument, at, compiler }) => {
    const checks = checksOf(argument, at, compiler)
    return ofObjects((value, path) =>
      checks.flatMap(([name, check]) => (Object.hasOwn(value, name) ? check(value, path) : [])),
    )
  },
  minProperties: (keyword) => atLeast(keyword, ofObjectSize, 'properties'),
  maxProperties: (keyword) => atMost(keyword, ofObjectSize, 'properties'),

  prefixItems: ({ argument, at, compiler }) => {
    const checks = listOf(argument, at).map((each, index) => compiler.compile(each, `${at}/${index}`))
    return ofArrays((value, path) =>
      checks.flatMap((check, index) => (index < value.length ? check(value[index], [...path, index]) : [])),
    )
  },
  items: ({ argument, schema, at, compiler }) => {
    // Until draft-07 a list stood for what is now `prefixItems`.
    const isList = Array.isArray(argument)
    const first = isList ? keywords['prefixItems']?.({ argument, schema, at, compiler }) : undefined
    const rest = compiler.compile(isList ? (schema['additionalItems'] ?? true) : argument, at)
    const start = listOf(isList ? argument : (schema['prefixItems'] ?? []), at).length
    return ofArrays((value, path) => [
      ...(first?.(value, path) ?? []),
      ...value.slice(start).flatMap((item, index) => rest(item, [...path, start + index])),
    ])
  },
  contains: ({ argument, schema, at, compiler }) => {
    const check = compiler.compile(argument, at)
    const least = schema['minContains'] === undefined ? 1 : numberOf(schema['minContains'], at)
    const most = schema['maxContains'] === undefined ? Infinity : numberOf(schema['maxContains'], at)
    return ofArrays((value, path) => {
      const found = value.filter((item) => check(item, path).length === 0).length
      if (found < least) return [{ message: `Too few matching items: at least ${least}`, path }]
      return found > most ? [{ message: `Too many matching items: at most ${most}`, path }] : []
    })
  },
  uniqueItems: ({ argument }) => {
    if (argument !== true) return () => []
    return ofArrays((value, path) => {
      const seen = new Set<string>()
      const again = value.findIndex((item) => seen.size === seen.add(canonical(item)).size)
      return again < 0 ? [] : [{ message: 'Equals an earlier item, and items must be unique', path: [...path, again] }]
    })
  },
  minItems: (keyword) => atLeast(keyword, ofArraySize, 'items'),
  maxItems: (keyword) => atMost(keyword, ofArraySize, 'items'),

  minLength: (keyword) => atLeast(keyword, ofTextSize, 'characters'),
  maxLength: (keyword) => atMost(keyword, ofTextSize, 'characters'),
  pattern: ({ argument, at }) => {
    const pattern = patternOf(argument, at)
    return (value, path) =>
      typeof value !== 'string' || pattern.test(value) ? [] : [{ message: `Must match the pattern ${pattern}`, path }]
  },

  minimum: (keyword) => atLeast(keyword, ofNumber),
  maximum: (keyword) => atMost(keyword, ofNumber),
  exclusiveMinimum: ({ argument, at }) => {
    const limit = numberOf(argument, at)
    return ofNumbers((value, path) => (value > limit ? [] : [{ message: `Must be more than ${limit}`, path }]))
  },
  exclusiveMaximum: ({ argument, at }) => {
    const limit = numberOf(argument, at)
    return ofNumbers((value, path) => (value < limit ? [] : [{ message: `Must be less than ${limit}`, path }]))
  },
  multipleOf: ({ argument, at }) => {
    const step = numberOf(argument, at)
    if (step <= 0) throw new TypeError(`${at} must be more than 0.`)
    return ofNumbers((value, path) => {
      const steps = value / step
      // 0.3 is a multiple of 0.1, though not in binary fractions.
      const isValid = Math.abs(steps - Math.round(steps)) <= 1e-9 * Math.max(1, Math.abs(steps))
      return isValid ? [] : [{ message: `Must be a multiple of ${step}`, path }]
    })
  },
}

const typeNames = new Set<unknown>(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'])

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function oneOfValues(values: readonly unknown[]): Check {
  const accepted = new Set(values.map(canonical))
  const message = `Invalid input: expected ${values.map((value) => JSON.stringify(value)).join(' or ')}`
  return (value, path) => (accepted.has(canonical(value)) ? [] : [{ message, path }])
}

/** The same text for values that JSON Schema calls equal: the order of keys does not count. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeOf(each) !== 'object') return each
    return Object.fromEntries(Object.entries(each as Members).sort(([left], [right]) => (left < right ? -1 : 1)))
  })
}

function alternatives({ argument, at, compiler }: Keyword): Check[] {
  return listOf(argument, at).map((each, index) => compiler.compile(each, `${at}/${index}`))
}

function failuresOf(checks: readonly Check[], value: unknown, path: Path): Issue[][] {
  return checks.map((check) => check(value, path)).filter((issues) => issues.length > 0)
}

function noneFits(failures: readonly Issue[][], path: Path): Issue[] {
  const reasons = failures.map((issues) => issues.map(({ message }) => message).join(', '))
  return [{ message: `Matches no alternative: ${reasons.join('; or ')}`, path }]
}

function missingKeys(value: Members, names: readonly string[], path: Path): Issue[] {
  return names.flatMap((name) => (Object.hasOwn(value, name) ? [] : [{ message: `Missing key: "${name}"`, path }]))
}

function checksOf(argument: unknown, at: string, compiler: Compiler): [name: string, check: Check][] {
  return Object.entries(membersOf(argument, at)).map(([name, each]) => [name, compiler.compile(each, `${at}/${name}`)])
}

function ofObjects(check: (value: Members, path: Path) => Issue[]): Check {
  return (value, path) => (typeOf(value) === 'object' ? check(value as Members, path) : [])
}

function ofArrays(check: (value: readonly unknown[], path: Path) => Issue[]): Check {
  return (value, path) => (Array.isArray(value) ? check(value, path) : [])
}

function ofNumbers(check: (value: number, path: Path) => Issue[]): Check {
  return (value, path) => (typeof value === 'number' ? check(value, path) : [])
}

/** Undefined for values that the keyword says nothing about. */
type Measure = (value: unknown) => number | undefined

const ofObjectSize: Measure = (value) => (typeOf(value) === 'object' ? Object.keys(value as object).length : undefined)
const ofArraySize: Measure = (value) => (Array.isArray(value) ? value.length : undefined)
const ofTextSize: Measure = (value) => (typeof value === 'string' ? Array.from(value).length : undefined)
const ofNumber: Measure = (value) => (typeof value === 'number' ? value : undefined)

function atLeast({ argument, at }: Keyword, measure: Measure, unit?: string): Check {
  const limit = numberOf(argument, at)
  const message = unit === undefined ? `Must be at least ${limit}` : `Too few ${unit}: at least ${limit}`
  return (value, path) => ((measure(value) ?? limit) >= limit ? [] : [{ message, path }])
}

function atMost({ argument, at }: Keyword, measure: Measure, unit?: string): Check {
  const limit = numberOf(argument, at)
  const message = unit === undefined ? `Must be at most ${limit}` : `Too many ${unit}: at most ${limit}`
  return (value, path) => ((measure(value) ?? limit) <= limit ? [] : [{ message, path }])
}

function membersOf(value: unknown, at: string): Members {
  if (typeOf(value) !== 'object') throw new TypeError(`${at} must be an object.`)
  return value as Members
}

function listOf(value: unknown, at: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError(`${at} must be a list.`)
  return value
}

function namesOf(value: unknown, at: string): readonly string[] {
  const names = listOf(value, at)
  if (!names.every((name) => typeof name === 'string')) throw new TypeError(`${at} must be a list of names.`)
  return names
}

function numberOf(value: unknown, at: string): number {
  if (typeof value !== 'number') throw new TypeError(`${at} must be a number.`)
  return value
}

function patternOf(source: unknown, at: string): RegExp {
  if (typeof source !== 'string') throw new TypeError(`${at} must be a regular expression.`)
  try {
    return new RegExp(source, 'u')
  } catch {
    // Many patterns are written without Unicode in mind, such as `\-`. One that is broken throws here.
    return new RegExp(source)
  }
}
