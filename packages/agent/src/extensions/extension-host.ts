import { basename, dirname, extname } from 'node:path'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import type { Model } from '../models/model.ts'
import type { ProviderAddition } from '../models/registry/provider-additions.ts'
import { commandEnvironment } from '../tools/commands/environment.ts'
import type { BoxProgram } from '../tools/commands/program-box.ts'
import type { Tool } from '../tools/tool.ts'
import { checkOffer, isAdded } from './check-offer.ts'
import { commandHooks, type CommandHooks } from './command-hooks.ts'
import { composeHooks } from './compose-hooks.ts'
import type { Extension } from './extension.ts'
import { messageOf } from '../util/message-of.ts'
import { ExtensionFailure } from './extension-failure.ts'
import { extensionModel } from './extension-model.ts'
import { extensionTool } from './extension-tool.ts'
import { readCommandResult } from './handler-results.ts'
import type { Hooks, HookSession } from '../run/hooks.ts'
import {
  defaultExtensionLimits,
  LoadedExtension,
  type ExtensionLimits,
  type ExtensionProblem,
  type RunnerCallbacks,
} from './loaded-extension.ts'
import type { Offer, Runner, AnswerRequest, Invocation, InvocationCall } from './runner.ts'
import type { TrustedModules } from './trusted-modules.ts'
import { WorkerRunner } from './worker-runner.ts'
import { Registrations } from './registrations.ts'

export interface ExtensionHostOptions {
  /** In handler order. They belong to the user or to a trusted project: the caller has verified that. */
  extensions?: readonly ExtensionSource[]
  /** Hooks as commands, from the settings. They run after the handlers of extensions, so they decide last. */
  commandHooks?: CommandHooks
  /** Called before each start of a command hook: returns a sentence if it must not start. */
  mayStart?: (command: string) => Promise<string | undefined>
  /** The sandbox of a command hook. Absent: they run outside. */
  box?: BoxProgram
  /** Base of relative paths, and working folder of commands. Absolute. */
  cwd: string
  /** The environment of extensions and commands. Default: variables known to be harmless. */
  env?: Readonly<Record<string, string>>
  limits?: Partial<ExtensionLimits>
  clock?: Clock
  onProblem?: (problem: ExtensionProblem) => void
  /** Receives the output of extensions. */
  onOutput?: (output: { extension: string; text: string }) => void
}

/** A path runs on its own thread. A function runs on this one: its caller trusts it not to loop. */
export type ExtensionSource =
  | string
  /** Of a project: only trusted code is loaded, as it was when it was trusted. */
  | { path: string; modules: TrustedModules }
  | { name: string; extension: Extension }

/** The result of a command. */
export type CommandOutcome =
  | { type: 'done'; say?: string }
  /** Text to send to the agent. */
  | { type: 'prompt'; prompt: string; say?: string }
  | { type: 'failed'; message: string }
  | { type: 'unknown' }

interface Offered<Item> {
  item: Item
  extension: LoadedExtension
}

/** All extensions of an agent. Their failures go to `onProblem` and do not affect the session. */
export class ExtensionHost {
  readonly #extensions: readonly LoadedExtension[]
  readonly #limits: ExtensionLimits
  readonly #sessions: Map<string, HookSession>
  readonly #reported = new Set<string>()

  private constructor(extensions: LoadedExtension[], limits: ExtensionLimits, sessions: Map<string, HookSession>) {
    this.#extensions = extensions
    this.#limits = limits
    this.#sessions = sessions
  }

  /** Loads them all concurrently. */
  static async open(options: ExtensionHostOptions): Promise<ExtensionHost> {
    const { cwd, clock = systemClock, onProblem = () => undefined } = options
    const sessions = new Map<string, HookSession>()
    const limits = { ...defaultExtensionLimits, ...options.limits }
    const shared = { limits, clock, cwd, onProblem, session: () => sessions.values().next().value }
    const extensions = runnerMakers(options, limits).map((make) => new LoadedExtension(shared, make))
    const host = new ExtensionHost(extensions, limits, sessions)
    await Promise.all(extensions.map((extension) => extension.load((offer) => checkOffer(offer, cwd))))
    host.#reportClashes()
    return host
  }

  /** For an `AgentSession`, or several. */
  get hooks(): Hooks {
    return { ...this.#composed(undefined), forSession: (session) => this.#forSession(session) }
  }

  /** Appends the tools of the extensions. If a name is taken, the first tool keeps it. */
  withTools(tools: readonly Tool[]): Tool[] {
    const all = [...tools]
    for (const { item, extension } of this.#offered('tools')) {
      if (all.some(({ name }) => name === item.name)) this.#clash(extension, 'tool', item.name)
      else all.push(extensionTool(item, extension, (sessionId) => this.#session(sessionId)))
    }
    return all
  }

  get commands(): { name: string; description: string; extension: string }[] {
    return this.#first('commands').map(({ item, extension }) => ({
      name: item.name,
      description: item.description,
      extension: extension.name,
    }))
  }

  /** Folders that contain skill folders. */
  get skillFolders(): string[] {
    return this.#offered('skills').map(({ item }) => item)
  }

  get templateFolders(): string[] {
    return this.#offered('templates').map(({ item }) => item)
  }

  /** Providers for the model registry, in addition to those of the settings. */
  get providers(): Record<string, ProviderAddition> {
    const added = this.#first('providers').flatMap(({ item }) => {
      if (!isAdded(item)) return []
      const { id, ...addition } = item
      return [[id, addition] as const]
    })
    return Object.fromEntries(added)
  }

  /** The models that extensions call themselves. */
  get models(): { provider: string; modelId: string }[] {
    return this.#ownModels().map(({ provider, id }) => ({ provider, modelId: id }))
  }

  openModel(provider: string, modelId: string): Model | undefined {
    const found = this.#ownModels().find((model) => model.provider === provider && model.id === modelId)
    if (!found) return undefined
    const { extension, ...options } = found
    return extensionModel({ ...options, silenceMs: this.#limits.modelMs }, extension)
  }

  /** Runs `/name args` in the given session, or else in the one that has been open longest: subagents come after it. */
  async runCommand(
    name: string,
    args: string,
    options: { sessionId?: string; signal?: AbortSignal } = {},
  ): Promise<CommandOutcome> {
    const found = this.#first('commands').find(({ item }) => item.name === name)
    if (!found) return { type: 'unknown' }
    const { extension } = found
    const { commandMs: limitMs } = this.#limits
    const session = this.#session(options.sessionId)
    try {
      const invocation = { type: 'command' as const, name, args }
      const value = await extension.invoke(invocation, { limitMs, session, signal: options.signal })
      const { say, prompt } = readCommandResult(value) ?? {}
      const said = say === undefined ? {} : { say }
      return prompt === undefined ? { type: 'done', ...said } : { type: 'prompt', prompt, ...said }
    } catch (error) {
      // The user sees the error; only other failures count.
      if (error instanceof ExtensionFailure && error.kind !== 'threw') extension.fail(`/${name}`, error)
      return { type: 'failed', message: `/${name} failed: ${messageOf(error)}` }
    }
  }

  /** Ends all threads and processes. */
  async close(): Promise<void> {
    await Promise.all(this.#extensions.map((extension) => extension.close()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #composed(session: HookSession | undefined): Hooks {
    return composeHooks({ extensions: this.#extensions, session, limitMs: this.#limits.handlerMs })
  }

  #forSession(session: HookSession): Hooks {
    this.#sessions.delete(session.id)
    this.#sessions.set(session.id, session)
    const hooks = this.#composed(session)
    return {
      ...hooks,
      sessionEnd: async (end) => {
        await hooks.sessionEnd(end)
        if (this.#sessions.get(session.id) === session) this.#sessions.delete(session.id)
      },
    }
  }

  #session(id?: string): HookSession | undefined {
    return id === undefined ? this.#sessions.values().next().value : this.#sessions.get(id)
  }

  #offered<Kind extends keyof Offer>(kind: Kind): Offered<Offer[Kind][number]>[] {
    return this.#extensions.flatMap((extension) => extension.offer[kind].map((item) => ({ item, extension })))
  }

  /** If two have the same name, the one that was loaded first. */
  #first<Kind extends 'commands' | 'providers'>(kind: Kind): Offered<Offer[Kind][number]>[] {
    const taken = new Set<string>()
    return this.#offered(kind).filter(({ item, extension }) => {
      const name = 'description' in item ? item.name : item.id
      if (taken.has(name)) this.#clash(extension, kind === 'commands' ? 'command' : 'provider', name)
      return !taken.has(name) && taken.add(name)
    })
  }

  #ownModels() {
    return this.#first('providers').flatMap(({ item, extension }) =>
      isAdded(item) ? [] : item.models.map(({ id, limits }) => ({ provider: item.id, id, limits, extension })),
    )
  }

  #reportClashes(): void {
    this.withTools([])
    this.#first('commands')
    this.#first('providers')
  }

  /** Reported once. */
  #clash(extension: LoadedExtension, what: string, name: string): void {
    const key = `${extension.name} ${what} ${name}`
    if (this.#reported.has(key)) return
    this.#reported.add(key)
    extension.report(undefined, `Its ${what} ${name} is left out: the name is already taken.`)
  }
}

function runnerMakers(options: ExtensionHostOptions, limits: ExtensionLimits): ((own: RunnerCallbacks) => Runner)[] {
  const { extensions = [], cwd, env = commandEnvironment(process.env), onOutput } = options
  const names = new Set<string>()
  const loaded = extensions.map((source) => {
    const file = typeof source === 'string' ? { path: source } : source
    const name = uniqueName('path' in file ? nameOf(file.path) : file.name, names)
    return ({ answerRequest, onCrash }: RunnerCallbacks): Runner => {
      if ('extension' in file) return new InProcessRunner(name, file.extension, answerRequest)
      const { memoryMb } = limits
      const print = (text: string): void => onOutput?.({ extension: name, text })
      return new WorkerRunner({ name, ...file, env, memoryMb, answerRequest, onCrash, onOutput: print })
    }
  })
  const report = (extension: string, hook: string, message: string): void =>
    options.onProblem?.({ extension, hook, message })
  const { mayStart = async () => undefined, box } = options
  const commands = commandHooks(options.commandHooks ?? {}, { cwd, env, report, mayStart, ...(box && { box }) })
  return [...loaded, ...commands.map((runner) => () => runner)]
}

/** `protect-paths.ts` is protect-paths, and so is `protect-paths/index.ts`. */
function nameOf(path: string): string {
  const name = basename(path, extname(path))
  return name === 'index' ? basename(dirname(path)) : name
}

function uniqueName(name: string, taken: Set<string>): string {
  let unique = name
  for (let count = 2; taken.has(unique); count++) unique = `${name} ${count}`
  taken.add(unique)
  return unique
}

/** Runs an extension on this thread, for embedders that trust the code: an endless loop cannot be stopped. */
class InProcessRunner implements Runner {
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
      if (this.#registrations !== registrations) throw new Error('The extension is no longer running.')
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
