/** The part of TypeDoc's JSON output that is used here. */
interface Node {
  kind?: number
  name?: string
  type?: unknown
  target?: unknown
  refersToTypeParameter?: boolean
}

/** A declaration that TypeDoc knows but has no page for. */
interface Declaration {
  packageName?: string
  packagePath?: string
  qualifiedName?: string
}

/**
 * Types of ours that a documented declaration uses but no entry point exports, as sentences. Users cannot name them. TypeDoc's own check
 * looks at one package only. `typeof` is left out: a type made from a value does not need that value.
 */
export function missingExports(project: unknown): string[] {
  const missing = new Map<string, string>()
  visit(project, [])
  return [...missing.values()].sort()

  function visit(value: unknown, path: readonly string[]): void {
    if (Array.isArray(value)) return value.forEach((each) => visit(each, path))
    if (typeof value !== 'object' || value === null) return
    const { kind, name, type, target, refersToTypeParameter = false } = value as Node
    if (type === 'query') return
    const here = kind === undefined || name === undefined ? path : [...path, name]
    if (type === 'reference' && isOurs(target) && !refersToTypeParameter) {
      const { packageName, packagePath, qualifiedName } = target
      const declared = `${qualifiedName} of ${packageName}/${packagePath}`
      if (!missing.has(declared))
        missing.set(declared, `${declared} is used by ${here.slice(1).join('.')} but not exported`)
    }
    for (const [key, inner] of Object.entries(value)) if (!heritage.has(key)) visit(inner, here)
  }
}

/** What an interface or a class inherits is listed among its own members. */
const heritage = new Set(['extendedTypes', 'implementedTypes', 'inheritedFrom', 'overwrites', 'implementationOf'])

/** A reference that TypeDoc resolved has a number instead. */
function isOurs(target: unknown): target is Declaration {
  return (
    typeof target === 'object' &&
    target !== null &&
    ((target as Declaration).packageName ?? '').startsWith('@tapetree/')
  )
}
