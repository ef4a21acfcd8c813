import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'

type Exports = string | { [condition: string]: Exports }

interface Manifest {
  name: string
  exports: Record<string, Exports>
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

/**
 * What is wrong with a package as it is installed: files for tests in it, and imports of what is neither shipped nor declared, in
 * anything that its entries reach, as program, as types and as source.
 */
export async function brokenImports(folder: string): Promise<string[]> {
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest
  const { dependencies, optionalDependencies, peerDependencies } = manifest
  const declared = new Set(Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }))
  const problems: string[] = []
  const seen = new Set<string>()
  const waiting = Object.values(manifest.exports)
    .flatMap(filesOf)
    .map((file) => join(folder, file))
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    const shown = `${manifest.name}/${relative(folder, file)}`
    if (!existsSync(file)) {
      problems.push(`${shown} is missing`)
      continue
    }
    for (const specifier of importsIn(file, await readFile(file, 'utf8'))) {
      if (specifier.startsWith('.')) waiting.push(targetOf(file, specifier))
      else if (!isKnown(specifier, declared)) problems.push(`${shown} imports ${specifier}, which is not declared`)
    }
  }
  const files = (await readdir(folder, { recursive: true })).map((path) => path.split(sep))
  const shipped = new Set(files.map((path) => path.join('/')))
  return [
    ...problems,
    ...files.filter(isForTests).map((path) => `${manifest.name} ships ${path.join('/')}`),
    ...[...shipped]
      .filter((path) => /^dist\/.*\.js$/.test(path) && !shipped.has(path.replace(/^dist(.*)js$/, 'src$1ts')))
      .map(
        (path) => `${manifest.name} ships ${path}, which is left from an earlier build: remove dist, and build again`,
      ),
  ]
}

/** All but what is public: the folder `testing` at the top. */
function isForTests(path: readonly string[]): boolean {
  return path.at(-1)?.includes('.test.') === true || path.indexOf('testing', 2) !== -1
}

function filesOf(exported: Exports): string[] {
  return typeof exported === 'string' ? [exported] : Object.values(exported).flatMap(filesOf)
}

/** Of text as our compiler writes it, and as we do. */
function importsIn(file: string, text: string): string[] {
  // When source is run, its imports of types are gone.
  const isSource = file.endsWith('.ts') && !file.endsWith('.d.ts')
  const patterns = [
    isSource
      ? /^(?:import|export)\b(?! type\b)[^'"]*?\bfrom ['"]([^'"]+)['"]/gm
      : /^(?:import|export)\b[^'"]*?\bfrom ['"]([^'"]+)['"]/gm,
    /^import ['"]([^'"]+)['"]/gm,
    /\bimport\(['"]([^'"]+)['"]\)/g,
  ]
  return patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, specifier = '']) => specifier))
}

/** Types are beside the program. */
function targetOf(file: string, specifier: string): string {
  const target = resolve(dirname(file), specifier)
  return file.endsWith('.d.ts') ? target.replace(/\.(?:js|ts)$/, '.d.ts') : target
}

function isKnown(specifier: string, declared: ReadonlySet<string>): boolean {
  if (specifier.startsWith('node:') || specifier.startsWith('#')) return true
  const [first = '', second = ''] = specifier.split('/')
  return declared.has(specifier.startsWith('@') ? `${first}/${second}` : first)
}
