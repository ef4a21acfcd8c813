// The imports between our source files.
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

/** One import of a source file. */
export interface Import {
  file: string
  line: number
  specifier: string
  /** The files it can mean: one for each condition it resolves under; empty for a foreign package. */
  targets: { condition: 'any' | 'node' | 'browser'; file: string }[]
}

type Conditions = string | { [condition: string]: Conditions }
type Manifest = { name: string; exports?: Record<string, Conditions>; imports?: Record<string, Conditions> }

export function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8')
  const { program, errors } = parseSync(file, text, {
    lang: file.endsWith('.tsx') ? 'tsx' : 'ts',
    sourceType: 'module',
  })
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`)
  const found: Import[] = []
  const add = (source: unknown, start: number): void => {
    const specifier = (source as { value?: unknown } | null)?.value
    if (typeof specifier !== 'string') return
    const line = text.slice(0, start).split('\n').length
    found.push({ file, line, specifier, targets: targetsOf(file, specifier) })
  }
  new Visitor({
    ImportDeclaration: (node) => add(node.source, node.start),
    ExportNamedDeclaration: (node) => add(node.source, node.start),
    ExportAllDeclaration: (node) => add(node.source, node.start),
    ImportExpression: (node) => add(node.source, node.start),
    TSImportType: (node) => add(node.source, node.start),
  }).visit(program)
  return found
}

/** The source files that an import can mean; none for a foreign package. */
export function targetsOf(file: string, specifier: string): Import['targets'] {
  if (specifier.startsWith('.')) {
    return [{ condition: 'any', file: withSlashes(relative('.', resolve(dirname(file), specifier))) }]
  }
  const own = packageOf(file)
  if (specifier.startsWith('#') && own !== undefined) {
    return sourcesOf(own, manifestOf(own).imports?.[specifier], `${file}: ${specifier}`)
  }
  const match = /^@tapetree\/([a-z]+)(\/.*)?$/.exec(specifier)
  if (match?.[1] === undefined) return []
  return sourcesOf(match[1], manifestOf(match[1]).exports?.[`.${match[2] ?? ''}`], `${file}: ${specifier}`)
}

/** Every source file a conditional export can mean, with the side on which it is taken. */
function sourcesOf(name: string, conditions: Conditions | undefined, what: string): Import['targets'] {
  const targets: Import['targets'] = []
  const walk = (value: Conditions, condition: 'any' | 'node' | 'browser'): void => {
    if (typeof value === 'string') {
      if (value.endsWith('.ts') && !value.endsWith('.d.ts')) {
        targets.push({ condition, file: withSlashes(join('packages', name, value)) })
      }
      return
    }
    const split = 'node' in value
    for (const [key, inner] of Object.entries(value)) {
      walk(inner, key === 'node' ? 'node' : split && key === 'default' ? 'browser' : condition)
    }
  }
  if (conditions !== undefined) walk(conditions, 'any')
  if (targets.length === 0) throw new Error(`${what} is not in the package.json of ${name}`)
  return targets
}

const manifests = new Map<string, Manifest>()

function manifestOf(name: string): Manifest {
  const known = manifests.get(name)
  if (known !== undefined) return known
  const manifest = JSON.parse(readFileSync(join('packages', name, 'package.json'), 'utf8')) as Manifest
  manifests.set(name, manifest)
  return manifest
}

export function packageOf(file: string): string | undefined {
  return /^packages\/([^/]+)\//.exec(file)?.[1]
}

export function withSlashes(path: string): string {
  return path.replaceAll('\\', '/')
}
