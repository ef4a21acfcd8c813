import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { messageOf } from '../util/message-of.ts'
import { Registrations } from './registrations.ts'
import { loadOnlyTrusted } from './trusted-modules.ts'
import type { FromWorker, ToWorker, WorkerStart } from './runner.ts'
import { pathToFileURL } from 'node:url'
import type { Extension } from './extension.ts'

/** The thread of one extension: loads it, and calls its registered handlers. */
async function serve(port: MessagePort, { path, name, modules }: WorkerStart): Promise<void> {
  const post = (message: FromWorker): void => port.postMessage(message, [])
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  const running = new Map<string, AbortController>()
  let requests = 0
  const registrations = new Registrations(async (request, invocationId) => {
    const requestId = ++requests
    const answer = Promise.withResolvers<unknown>()
    post({ type: 'request', requestId, request, ...(invocationId !== undefined && { invocationId }) })
    waiting.set(requestId, answer)
    return answer.promise
  })
  port.on('message', (message: ToWorker) => void take(message))
  try {
    if (modules) loadOnlyTrusted(modules)
    post({ type: 'loaded', offer: await registrations.load(await loadExtension(path), name) })
  } catch (error) {
    post({ type: 'not_loaded', problem: messageOf(error) })
  }

  async function take(message: ToWorker): Promise<void> {
    switch (message.type) {
      case 'invoke':
        return invoke(message)
      case 'abort':
        running.get(message.id)?.abort()
        return
      case 'answer': {
        const { requestId, value, problem } = message
        if (problem === undefined) waiting.get(requestId)?.resolve(value)
        else waiting.get(requestId)?.reject(new Error(problem))
        waiting.delete(requestId)
        return
      }
      default:
        message satisfies never
    }
  }

  async function invoke({ invocation, call }: ToWorker & { type: 'invoke' }): Promise<void> {
    const { id } = call
    const controller = new AbortController()
    running.set(id, controller)
    try {
      const json = await registrations.perform(invocation, { ...call, signal: controller.signal })
      post({ type: 'result', id, ...(json !== undefined && { json }) })
    } catch (error) {
      const { kind } = (error ?? {}) as { kind?: unknown }
      post({ type: 'threw', id, problem: messageOf(error), ...(typeof kind === 'string' && { errorKind: kind }) })
    } finally {
      running.delete(id)
    }
  }
}

if (parentPort) void serve(parentPort, workerData as WorkerStart)

/**
 * Runs the module at this absolute path and returns its default export. Throws a sentence if it is unusable.
 * The code runs with all rights of the user: only paths named by the user's settings or a trusted project may
 * be passed.
 */
async function loadExtension(path: string): Promise<Extension> {
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
        `${path} uses TypeScript that type stripping does not support, such as an enum, a namespace or a parameter ` +
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
