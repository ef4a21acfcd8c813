import type { Extension } from './extension.ts'
import { ExtensionFailure, messageOf } from './extension-failure.ts'
import { Registrations } from './registrations.ts'
import type { AnswerRequest, Invocation, InvocationCall, Offer, Runner } from './runner.ts'

/** Runs an extension on this thread, for who embeds the agent and trusts the code: what loops there is stopped by nobody. */
export class InProcessRunner implements Runner {
  readonly name: string
  readonly #extension: Extension
  readonly #answerRequest: AnswerRequest
  readonly #open = new Set<(failure: Error) => void>()
  #registrations: Registrations | undefined

  constructor(name: string, extension: Extension, answerRequest: AnswerRequest) {
    this.name = name
    this.#extension = extension
    this.#answerRequest = answerRequest
  }

  async start(): Promise<Offer> {
    const registrations = new Registrations(async (request, invocationId) => {
      if (this.#registrations !== registrations) throw new Error('The extension is not running any more.')
      return this.#answerRequest(request, invocationId)
    })
    this.#registrations = registrations
    return registrations.load(this.#extension, this.name)
  }

  async invoke(invocation: Invocation, call: InvocationCall): Promise<unknown> {
    const stopped = Promise.withResolvers<never>()
    this.#open.add(stopped.reject)
    try {
      return await Promise.race([this.#perform(invocation, call), stopped.promise])
    } finally {
      this.#open.delete(stopped.reject)
    }
  }

  async stop(failure: Error): Promise<void> {
    this.#registrations = undefined
    for (const reject of this.#open) reject(failure)
  }

  async #perform(invocation: Invocation, call: InvocationCall): Promise<unknown> {
    try {
      const json = await this.#registrations?.perform(structuredClone(invocation), call)
      return json === undefined ? undefined : (JSON.parse(json) as unknown)
    } catch (error) {
      const { kind: errorKind } = error as { kind?: string }
      throw new ExtensionFailure('threw', messageOf(error), { cause: error, errorKind })
    }
  }
}
