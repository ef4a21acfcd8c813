import { isObject } from '@tapetree/session/util/json'
import { Worker } from 'node:worker_threads'
import { messageOf } from '../util/message-of.ts'
import { ExtensionFailure } from './extension-failure.ts'
import type {
  AnswerRequest,
  Invocation,
  InvocationCall,
  Offer,
  Runner,
  FromWorker,
  ToWorker,
  WorkerStart,
} from './runner.ts'
import type { TrustedModules } from './trusted-modules.ts'
import { programUrl } from '../util/program-url.ts'

export interface WorkerRunnerOptions {
  name: string
  /** Absolute. */
  path: string
  /** Modules of a project, which replace those on disk. */
  modules?: TrustedModules
  env: Readonly<Record<string, string>>
  memoryMb: number
  answerRequest: AnswerRequest
  /** Called when its thread has ended unexpectedly. */
  onCrash: (failure: ExtensionFailure) => void
  /** Receives its output, which must not reach the screen directly. */
  onOutput: (text: string) => void
}

/**
 * Runs an extension on its own thread: one that loops, exits or exhausts its memory is stopped without harm. It
 * is not a sandbox; the code has all rights of the user.
 */
export class WorkerRunner implements Runner {
  readonly name: string
  readonly #options: WorkerRunnerOptions
  readonly #open = new Map<string, PromiseWithResolvers<unknown>>()
  #loading: PromiseWithResolvers<Offer> | undefined
  #worker: Worker | undefined

  constructor(options: WorkerRunnerOptions) {
    this.name = options.name
    this.#options = options
  }

  async start(): Promise<Offer> {
    const { path, name, modules, env, memoryMb, onOutput } = this.#options
    const worker = new Worker(programUrl('extension-worker', import.meta.url), {
      workerData: { path, name, ...(modules && { modules }) } satisfies WorkerStart,
      env,
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
      name,
    })
    this.#worker = worker
    this.#loading = Promise.withResolvers<Offer>()
    let end = 'ended its thread'
    worker.on('message', (message: unknown) => {
      // The code may post anything itself.
      if (this.#worker === worker && isObject(message)) this.#take(message as FromWorker)
    })
    worker.on('error', (error) => void (end = endOf(error, memoryMb)))
    worker.on('exit', () => {
      if (this.#worker === worker) this.#crashed(new ExtensionFailure('crashed', `It ${end}.`))
    })
    for (const stream of [worker.stdout, worker.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', onOutput)
    }
    return this.#loading.promise
  }

  async invoke(invocation: Invocation, { signal, ...call }: InvocationCall): Promise<unknown> {
    const { id } = call
    if (!this.#worker) throw new ExtensionFailure('off', 'It is not running.')
    const answer = Promise.withResolvers<unknown>()
    this.#open.set(id, answer)
    const abort = (): void => this.#post({ type: 'abort', id })
    signal.addEventListener('abort', abort, { once: true })
    try {
      this.#post({ type: 'invoke', invocation, call })
      if (signal.aborted) abort()
      return await answer.promise
    } finally {
      signal.removeEventListener('abort', abort)
      this.#open.delete(id)
    }
  }

  async stop(failure: Error): Promise<void> {
    const worker = this.#worker
    this.#settleAll(failure)
    await worker?.terminate()
  }

  #take(message: FromWorker): void {
    switch (message.type) {
      case 'loaded':
        this.#loading?.resolve(message.offer)
        return
      case 'not_loaded':
        this.#loading?.reject(new ExtensionFailure('threw', message.problem))
        return
      case 'result':
        this.#finish(message)
        return
      case 'threw': {
        const { id, problem, errorKind } = message
        this.#open.get(id)?.reject(new ExtensionFailure('threw', problem, { errorKind }))
        return
      }
      case 'request':
        void this.#answer(message)
        return
      default:
        message satisfies never
    }
  }

  #finish({ id, json }: FromWorker & { type: 'result' }): void {
    const answer = this.#open.get(id)
    try {
      answer?.resolve(json === undefined ? undefined : JSON.parse(json))
    } catch {
      answer?.reject(new ExtensionFailure('threw', 'Its result is not JSON.'))
    }
  }

  async #answer({ requestId, request, invocationId }: FromWorker & { type: 'request' }): Promise<void> {
    const asker = this.#worker
    let answer: ToWorker
    try {
      answer = { type: 'answer', requestId, value: await this.#options.answerRequest(request, invocationId) }
    } catch (error) {
      answer = { type: 'answer', requestId, problem: messageOf(error) }
    }
    if (this.#worker === asker) this.#post(answer)
  }

  #post(message: ToWorker): void {
    this.#worker?.postMessage(message)
  }

  #crashed(failure: ExtensionFailure): void {
    this.#settleAll(failure)
    this.#options.onCrash(failure)
  }

  #settleAll(failure: Error): void {
    this.#worker = undefined
    this.#loading?.reject(failure)
    for (const { reject } of this.#open.values()) reject(failure)
  }
}

function endOf(error: unknown, memoryMb: number): string {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? `used more than ${memoryMb} MB`
    : `threw outside of a call: ${messageOf(error)}`
}
