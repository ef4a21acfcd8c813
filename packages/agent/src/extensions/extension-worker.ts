import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { messageOf } from './extension-failure.ts'
import { loadExtension } from './load-extension.ts'
import { Registrations } from './registrations.ts'
import { loadOnlyTrusted } from './trusted-modules.ts'
import type { FromWorker, ToWorker, WorkerStart } from './worker-messages.ts'

/** The thread of one extension: loads it, and calls what it has registered. */
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
