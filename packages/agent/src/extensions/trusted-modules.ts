import { registerHooks } from 'node:module'
import { dirname, extname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isInside } from '../util/is-inside.ts'

/** The code of a project as the user trusted it. */
export interface TrustedModules {
  /** The folder of the project, absolute and resolved. */
  root: string
  /** The content of its modules by absolute, resolved path. Other modules of the project do not load. */
  files: ReadonlyMap<string, Uint8Array>
  /** Packages that must come from the project. */
  packages: readonly string[]
}

/**
 * From now on, this thread imports and requires modules of the project only in their trusted version, whatever
 * is on disk. This covers modules only: the code may read and run any file itself.
 */
export function loadOnlyTrusted({ root, files, packages }: TrustedModules): void {
  const isOfProject = (path: string | undefined): boolean => path !== undefined && isInside(path, root)
  registerHooks({
    resolve(specifier, context, next) {
      const parent = context.parentURL?.startsWith('file:') ? fileURLToPath(context.parentURL) : undefined
      const found = next(specifier, context)
      if (!found.url.startsWith('file:')) return found
      const path = fileURLToPath(found.url)
      const isOurs = isOfProject(path) || isOfProject(parent)
      if (!isOurs && !isOfProject(pathMeant(specifier, parent))) return found
      // A path of the project must resolve inside the project: a link that leads out did not exist when it was
      // trusted.
      const mustBeInside = isOfProject(pathMeant(specifier, parent)) || packages.some((name) => isOf(specifier, name))
      if (isOfProject(path) ? !files.has(path) : mustBeInside) {
        throw new Error(`${path} is not part of what you trusted. Only modules that static imports name can be loaded.`)
      }
      return found
    },
    load(url, context, next) {
      const path = url.startsWith('file:') ? fileURLToPath(url) : undefined
      if (path === undefined || !isOfProject(path)) return next(url, context)
      const bytes = files.get(path)
      if (!bytes) throw new Error(`${path} is not part of what you trusted.`)
      const source = Buffer.from(bytes).toString('utf8')
      return { source, format: context.format ?? formatOf(path, source), shortCircuit: true }
    },
  })
}

function pathMeant(specifier: string, parent: string | undefined): string | undefined {
  try {
    if (specifier.startsWith('file:')) return fileURLToPath(specifier)
  } catch {
    return undefined
  }
  return parent !== undefined && /^\.{0,2}\//.test(specifier) ? resolve(dirname(parent), specifier) : undefined
}

function isOf(specifier: string, name: string): boolean {
  return specifier === name || specifier.startsWith(`${name}/`)
}

/** The format that Node would detect, for files whose package does not declare it. */
function formatOf(path: string, source: string): string {
  const extension = extname(path)
  if (extension === '.json') return 'json'
  const isModule =
    extension.startsWith('.m') || (!extension.startsWith('.c') && /^\s*(?:import|export)\b/m.test(source))
  return `${isModule ? 'module' : 'commonjs'}${extension.endsWith('ts') ? '-typescript' : ''}`
}
