import { realpath } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isInside } from '../util/is-inside.ts'
import { readBounded } from './config-files.ts'
import { sha256Of } from '../util/request-hash.ts'
import type { ProjectContent, ProjectFile } from './project.ts'

/** The code that extensions of a project import, as bytes that were read once. */
export interface ProjectModules {
  /** The files of the repository outside of its configuration. */
  modules: ProjectFile[]
  /** The names of packages in the repository. */
  packages: string[]
  /** What extensions may load that is not among the files: a sentence each. */
  uncovered: string[]
  leftOut: ProjectContent['leftOut']
}

/** Modules beyond these limits are left out, and extensions that need them do not load. */
export const moduleLimits = { files: 2000, fileBytes: 4 * 1024 * 1024, totalBytes: 32 * 1024 * 1024 } as const

/**
 * Follows the imports of extensions through the repository without running anything. Imports are found by a pattern,
 * also in comments and strings: an extra file does no harm, and a missed one cannot be loaded, because only files that
 * were read here can.
 */
export async function readModules(entries: readonly string[], content: ProjectContent): Promise<ProjectModules> {
  const reader = new ModuleReader(content)
  for (const entry of entries) await reader.follow(entry)
  const { found } = reader
  return { ...found, uncovered: [...new Set(found.uncovered)] }
}

class ModuleReader {
  readonly found: ProjectModules = { modules: [], packages: [], uncovered: [], leftOut: [] }
  readonly #root: string
  readonly #known: ReadonlyMap<string, ProjectFile>
  readonly #seen = new Set<string>()
  #bytesLeft: number = moduleLimits.totalBytes

  constructor({ root, files }: ProjectContent) {
    this.#root = root
    this.#known = new Map(files.map((file) => [file.realPath, file]))
  }

  async follow(entry: string): Promise<void> {
    const waiting = [entry]
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      const file = await this.#read(path)
      if (!file || !/\.[cm]?[jt]s$/.test(file.path)) continue
      const source = Buffer.from(file.bytes).toString('utf8')
      if (computedImport.test(source)) {
        this.found.uncovered.push(`${file.path} loads modules whose paths are computed when it runs`)
      }
      for (const specifier of importsOf(source)) waiting.push(...(await this.#candidates(specifier, file)))
    }
  }

  /** Undefined if it was read before, is missing or is not code. */
  async #read(path: string): Promise<ProjectFile | undefined> {
    const real = /\.(?:[cm]?[jt]s|json)$/.test(path) ? await realpath(path).catch(() => undefined) : undefined
    if (real === undefined || this.#seen.has(real) || !isInside(real, this.#root)) return undefined
    this.#seen.add(real)
    const known = this.#known.get(real)
    if (known) return known
    const shown = relative(this.#root, real).split(sep).join('/')
    const result = await readBounded(real, moduleLimits.fileBytes)
    if (result.type === 'missing' || (result.type === 'refused' && result.reason === 'It is a folder.'))
      return undefined
    const isTooMuch =
      this.found.modules.length >= moduleLimits.files ||
      (result.type === 'read' && (this.#bytesLeft -= result.bytes.length) < 0)
    if (result.type === 'refused' || isTooMuch) {
      const reason = result.type === 'refused' ? result.reason : 'There are too many modules.'
      this.found.leftOut.push({ path: shown, reason: `${reason} Extensions that import it do not load.` })
      return undefined
    }
    const { bytes } = result
    const file = { path: shown, realPath: real, bytes, sha256: sha256Of(bytes) }
    this.found.modules.push(file)
    return file
  }

  /** Every file that a specifier may refer to for `import` or `require`, under any condition. */
  async #candidates(specifier: string, { realPath, path }: ProjectFile): Promise<string[]> {
    if (isBuiltin(specifier)) return []
    if (/^(?:\.{1,2}\/|\/|file:)/.test(specifier)) {
      const paths = pathsMeant(specifier, realPath)
      if (!paths.some((each) => isInside(each, this.#root))) {
        this.found.uncovered.push(`${path} imports ${specifier} from outside of the repository`)
      }
      return paths.flatMap(probed)
    }
    const [, name, rest = ''] = /^((?:@[^/]+\/)?[^/]+)(?:\/(.*))?$/.exec(specifier) ?? []
    if (name === undefined || /^[#.]|[\\%\0]/.test(name)) return []
    for (let folder = dirname(realPath); isInside(folder, this.#root); folder = dirname(folder)) {
      const place = join(folder, 'node_modules', name)
      const manifest = await readManifest(place)
      if (manifest === undefined) continue
      if (!this.found.packages.includes(name)) this.found.packages.push(name)
      return [...targetsOf(manifest, rest).map((target) => join(place, target)), join(place, rest)].flatMap(probed)
    }
    this.found.uncovered.push(`${path} imports ${specifier} from outside of the repository`)
    return []
  }
}

/** The literal specifiers that a module imports, re-exports or requires. */
const importPattern = /\b(?:from|import|require)\s*(?:\(\s*)?(['"])([^'"\n]{1,500})\1/g
const computedImport = /\b(?:import|require)\s*\((?!\s*(['"])[^'"\n]*\1\s*[,)])/

function importsOf(source: string): Set<string> {
  return new Set([...source.matchAll(importPattern)].map(([, , specifier = '']) => specifier))
}

/** For `import` a path is part of a URL, for `require` it is a path. */
function pathsMeant(specifier: string, parent: string): string[] {
  const paths = specifier.startsWith('file:') ? [] : [resolve(dirname(parent), specifier)]
  try {
    const address = new URL(specifier, pathToFileURL(parent))
    address.search = ''
    address.hash = ''
    paths.push(fileURLToPath(address))
  } catch {
    // Not a URL: only `require` supports it.
  }
  return [...new Set(paths)]
}

function probed(path: string): string[] {
  return [path, `${path}.js`, `${path}.cjs`, `${path}.mjs`, `${path}.json`, join(path, 'index.js')]
}

async function readManifest(folder: string): Promise<Record<string, unknown> | undefined> {
  const real = await realpath(join(folder, 'package.json')).catch(() => undefined)
  const result = real === undefined ? undefined : await readBounded(real, 1024 * 1024)
  if (result?.type !== 'read') return undefined
  try {
    const manifest: unknown = JSON.parse(Buffer.from(result.bytes).toString('utf8'))
    return typeof manifest === 'object' && manifest !== null ? (manifest as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function targetsOf({ main, exports }: Record<string, unknown>, rest: string): string[] {
  const wanted = rest === '' ? '.' : `./${rest}`
  const isTable =
    typeof exports === 'object' && exports !== null && Object.keys(exports).some((key) => key.startsWith('.'))
  const entries: [string, unknown][] = isTable ? Object.entries(exports) : [['.', exports]]
  const exported = entries.flatMap(([key, value]) => {
    const [start = '', end] = key.split('*')
    if (end === undefined) return key === wanted ? stringsIn(value) : []
    const isMeant = wanted.startsWith(start) && wanted.endsWith(end) && wanted.length >= start.length + end.length
    const middle = wanted.slice(start.length, wanted.length - end.length)
    return isMeant ? stringsIn(value).map((target) => target.replaceAll('*', middle)) : []
  })
  return [...exported, ...(rest === '' && typeof main === 'string' ? [main] : [])]
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return /\.d\.[cm]?ts$/.test(value) ? [] : [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}
