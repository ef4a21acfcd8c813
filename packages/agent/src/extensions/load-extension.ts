import { pathToFileURL } from 'node:url'
import type { Extension } from './extension.ts'

/**
 * Runs the module at this absolute path and gives its default export. Throws a sentence on what is wrong with it. It does whatever
 * it likes with the rights of the user: only paths that the user's own settings or a trusted project name may come here.
 */
export async function loadExtension(path: string): Promise<Extension> {
  let loaded: { default?: unknown }
  try {
    loaded = (await import(pathToFileURL(path).href)) as { default?: unknown }
  } catch (cause) {
    throw new Error(sentenceOf(path, cause), { cause })
  }
  if (typeof loaded.default === 'function') return loaded.default as Extension
  throw new Error(`${path} has no function as its default export.`)
}

function sentenceOf(path: string, error: unknown): string {
  const { code, message, url } = error as NodeJS.ErrnoException & { url?: string }
  switch (code) {
    case 'ERR_MODULE_NOT_FOUND':
      if (url === pathToFileURL(path).href) return `There is no file ${path}.`
      return `${path} could not be loaded: ${firstLine(message)}`
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
      return (
        `${path} has TypeScript that cannot be run by leaving out its types, such as an enum, a namespace or a parameter ` +
        `property: ${firstLine(message)}`
      )
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return `${path} is TypeScript inside node_modules, which Node does not run. Name a JavaScript file of that package.`
    case 'ERR_UNKNOWN_FILE_EXTENSION':
      return `${path} is neither JavaScript nor TypeScript.`
    default:
      return `${path} could not be loaded: ${firstLine(message ?? String(error))}`
  }
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] as string
}
