import { AsyncLocalStorage } from 'node:async_hooks'
import type {
  Extension,
  ExtensionApi,
  ExtensionCommand,
  ExtensionProvider,
  ExtensionTool,
  HandlerContext,
  HookName,
  OwnProvider,
} from './extension.ts'
import type { AnswerRequest, Invocation, InvocationCall, Offer } from './runner.ts'
import type { Answer } from '../tools/tool.ts'

type AnyHandler = (event: unknown, context: HandlerContext) => unknown

/** Results larger than this are discarded. */
const maxResultChars = 20_000_000

/** The registered code of one extension, and how it is called; the same on any thread. */
export class Registrations {
  readonly #handlers: { hook: HookName; handler: AnyHandler }[] = []
  readonly #commands: ExtensionCommand[] = []
  readonly #tools: ExtensionTool[] = []
  readonly #providers: ExtensionProvider[] = []
  readonly #skills: string[] = []
  readonly #templates: string[] = []
  readonly #send: AnswerRequest
  /** The current invocation of an API call, which determines its session and its time limit. */
  readonly #invocation = new AsyncLocalStorage<string>()
  #isLoaded = false

  constructor(send: AnswerRequest) {
    this.#send = send
  }

  async load(extension: Extension, name: string): Promise<Offer> {
    await extension(this.#api(name))
    this.#isLoaded = true
    return {
      handlers: this.#handlers.map(({ hook }, index) => ({ hook, index })),
      commands: this.#commands.map(({ run: _, ...command }) => command),
      tools: this.#tools.map(({ run: _, ...tool }) => tool),
      providers: this.#providers.map((provider) => {
        if (!('stream' in provider)) return provider
        const { stream: _, ...rest } = provider
        return rest
      }),
      skills: this.#skills,
      templates: this.#templates,
    }
  }

  /** The result as JSON; undefined if there is none. Rejects with the error of the code. */
  async perform(invocation: Invocation, call: InvocationCall): Promise<string | undefined> {
    const answer = await this.#invocation.run(call.id, () => this.#perform(invocation, call))
    if (answer === undefined || answer === null) return undefined
    const json = JSON.stringify(answer) as string | undefined
    if (json === undefined) throw new TypeError(`It returned a ${typeof answer}.`)
    if (json.length > maxResultChars) throw new RangeError(`Its result is too long: ${json.length} characters.`)
    return json
  }

  async #perform(invocation: Invocation, { sessionId, cwd, signal }: InvocationCall): Promise<unknown> {
    const context: HandlerContext = { sessionId, cwd, signal }
    switch (invocation.type) {
      case 'handler': {
        const { handler } = registered(this.#handlers[invocation.index], 'handler')
        return handler(invocation.event, context)
      }
      case 'command':
        return byName(this.#commands, invocation.name).run(invocation.args, context)
      case 'tool': {
        const { name, input, runId, callId, model } = invocation
        const observe = (text: string): void => void this.#request({ type: 'observe', text }).catch(() => undefined)
        const ask = this.#ask
        return byName(this.#tools, name).run(input, {
          ...context,
          ...{ runId, callId, observe, ask },
          ...(model && { model }),
        })
      }
      case 'model': {
        const provider = this.#providers.find(({ id }) => id === invocation.provider)
        const { stream } = registered(provider, 'provider') as OwnProvider
        for await (const part of stream(invocation.request, context)) await this.#request({ type: 'model_part', part })
        return undefined
      }
      default:
        invocation satisfies never
        return undefined
    }
  }

  #api(name: string): ExtensionApi {
    return {
      name,
      registerCommand: (command) => this.#register(this.#commands, withRun(command, 'command')),
      registerTool: (tool) => this.#register(this.#tools, withRun(tool, 'tool')),
      registerProvider: (provider) => this.#register(this.#providers, provider),
      registerSkills: (folder) => this.#register(this.#skills, folder),
      registerTemplates: (folder) => this.#register(this.#templates, folder),
      on: (hook, handler) => {
        if (typeof handler !== 'function') throw new TypeError(`The handler of ${hook} is not a function.`)
        this.#register(this.#handlers, { hook, handler: handler as unknown as AnyHandler })
      },
      appendEntry: async (customType, data) => void (await this.#request({ type: 'append_entry', customType, data })),
      appendMessage: async (text) => void (await this.#request({ type: 'append_message', text })),
      leafId: async () => (await this.#request({ type: 'leaf_id' })) as string | null,
      setLabel: async (entryId, label) => void (await this.#request({ type: 'set_label', entryId, label })),
      labels: async () => (await this.#request({ type: 'labels' })) as { entryId: string; label: string }[],
      setSessionName: async (name) => void (await this.#request({ type: 'set_name', name })),
      steer: async (text) => void (await this.#request({ type: 'send', delivery: 'steer', text })),
      followUp: async (text) => void (await this.#request({ type: 'send', delivery: 'follow-up', text })),
      ask: this.#ask,
    }
  }

  readonly #ask: ExtensionApi['ask'] = async (question) => (await this.#request({ type: 'ask', question })) as Answer

  async #request(request: Parameters<AnswerRequest>[0]): Promise<unknown> {
    return this.#send(request, this.#invocation.getStore())
  }

  #register<Item>(list: Item[], item: Item): void {
    if (this.#isLoaded) throw new Error('Registrations are only possible before the default function returns.')
    list.push(item)
  }
}

function withRun<Item extends { name: string; run: unknown }>(item: Item, what: string): Item {
  if (typeof item.run !== 'function') throw new TypeError(`The ${what} ${item.name} has no function run.`)
  return item
}

function byName<Item extends { name: string }>(items: readonly Item[], name: string): Item {
  return registered(
    items.find((item) => item.name === name),
    name,
  )
}

/** A restarted extension may have registered something else. */
function registered<Item>(item: Item | undefined, what: string): Item {
  if (item === undefined) throw new Error(`It no longer registers ${what}.`)
  return item
}
