import { randomBytes } from 'node:crypto'
import { mkdir, readFile, realpath } from 'node:fs/promises'
import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { createRedactor, defaultPolicy, type Redactor } from '@tapetree/redact'
import { acquireWriterLock, type WriterLock } from '@tapetree/session/stores/file'
import { settledWithin } from '@tapetree/session/util/deadline'
import { replaceFile } from '@tapetree/session/util/replace-file'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { SessionSandbox } from '../sandbox/session-sandbox.ts'
import { judgeCall } from '../permissions/judge-call.ts'
import type { PermissionMode } from '../permissions/modes.ts'
import { exactPath, meetsBelow } from '../permissions/paths/path-pattern.ts'
import type { Rule } from '../permissions/rules.ts'
import { readCommandLine } from '../permissions/shell/command-reader.ts'
import { loadInstructions } from '../resources/instructions.ts'
import { Sandbox, sandboxFolder, type SandboxPlace } from '../sandbox/sandbox.ts'
import { allTools, needsFiles } from '../tools/builtin/all-tools.ts'
import { sandboxCallId } from '../tools/commands/box-notes.ts'
import { Jobs } from '../tools/commands/jobs.ts'
import { SessionSuspended, type Access, type BoxKind, type Tool } from '../tools/tool.ts'
import { FileTransfers } from './file-transfers.ts'
import { HostFiles } from './host-files.ts'
import { HostJobs } from './host-jobs.ts'
import { CallJournal, type StartedCall } from './call-journal.ts'
import { isInside } from '../util/is-inside.ts'
import { HostedCall, hostTexts, send, type HostedSession, type HostLink, type JudgedCall } from './hosted-call.ts'
import {
  hostRequest,
  introduced,
  maxHelloBytes,
  maxNameLength,
  parseMessage,
  toolHostProtocol,
  type CallRequest,
  type HostedWorkspace,
  type HostHello,
  type HostMessage,
} from './messages.ts'

type Hello = Extract<HostMessage, { type: 'hello' }>

export interface ToolHostOptions {
  /** Keeps the identity of this host, its journal of calls and the output of commands. */
  dataFolder: string
  /** Shown to people. Default: the name of the machine. */
  name?: string
  /** The folders that it offers, by name. */
  workspaces: Readonly<Record<string, string>>
  /**
   * The most that this host allows: what needs a permission in this mode is refused. Default: `sandboxed`, or
   * `accept-edits` if commands cannot run in a sandbox.
   */
  mode?: HostMode
  /** Rules of the owner of this machine. */
  rules?: readonly Rule[]
  sandbox?: SandboxPlace
  /**
   * Whether sessions keep the files of the workspaces, without ignored ones and those with secrets, so that they can be
   * recreated on another host. Default: true.
   */
  sharesFiles?: boolean
  /** Redacts everything that leaves this machine. Default: keys of known formats, and secrets of the environment. */
  redactor?: Redactor
  home?: string
  clock?: Clock
}

export type HostMode = Exclude<PermissionMode, 'ask'>

/** More calls at once are refused. */
const maxCalls = 256
/** More than this, of a service that does not heed it, are not answered. */
const maxAsked = 4096
/** So many sessions without a running call are kept open. */
const maxSessions = 100
/** A result that nobody collects for so long is removed. The call stays known, so that it does not run again. */
const keepResultsMs = 30 * 24 * 60 * 60 * 1000
const cleanEveryMs = 24 * 60 * 60 * 1000
/** How long a process that ends waits for calls that must not be interrupted: on a busy machine, writing a file can take seconds. */
const finishMs = 8000

/**
 * Runs the calls of sessions that run elsewhere, in folders of this machine. Each call runs at most once: a service that
 * sends it again gets the running call, or its result. Calls continue without a connection. The host judges every call by
 * its own rules, with the files as they are here.
 */
export class ToolHost {
  readonly hello: HostHello
  readonly #introduction: HostMessage
  readonly #lock: WriterLock
  readonly #closing = new AbortController()
  readonly #options: ToolHostOptions
  readonly #journal: CallJournal
  readonly #redactor: Redactor
  readonly #workspaces: ReadonlyMap<string, Workspace>
  readonly #sessions = new Map<string, WorkspaceSession>()
  readonly #calls = new Map<string, HostedCall>()
  readonly #ends = new Set<Promise<void>>()
  readonly #links = new Set<HostLink>()
  readonly #transfers: FileTransfers
  readonly #jobs: HostJobs

  private constructor(
    options: ToolHostOptions,
    { hello, workspaces, lock }: { hello: Hello; workspaces: ReadonlyMap<string, Workspace>; lock: WriterLock },
  ) {
    this.hello = introduced(hello)
    this.#introduction = hello
    this.#lock = lock
    this.#options = options
    this.#workspaces = workspaces
    this.#journal = new CallJournal(join(options.dataFolder, 'calls'))
    this.#redactor = redactorOf(options)
    const storesFolder = join(options.dataFolder, 'files')
    const filesOf = (workspace: Workspace): HostFiles =>
      new HostFiles({
        folder: workspace.folder,
        storesFolder,
        redactor: this.#redactor,
        mayUse: (access, path) => workspace.mayUse(access, path),
      })
    this.#transfers = new FileTransfers(
      new Map([...workspaces].map(([name, workspace]) => [name, filesOf(workspace)])),
      {
        sharesFiles: options.sharesFiles ?? true,
      },
    )
    const { clock = systemClock } = options
    this.#jobs = new HostJobs((session) => this.#folderOf(session), { clock, closing: this.#closing.signal })
  }

  /** Also continues the commands that an earlier process of this host started. Rejects if another process uses its folder. */
  static async open(options: ToolHostOptions): Promise<ToolHost> {
    const { dataFolder } = options
    await mkdir(join(dataFolder, 'calls'), { recursive: true, mode: 0o700 })
    const attempt = await acquireWriterLock(join(dataFolder, 'lock'))
    if (attempt.type === 'held') throw new ToolHostInUse(dataFolder)
    if (attempt.type === 'unavailable') throw new Error(attempt.reason)
    const { lock } = attempt
    try {
      const workspaces = new Map<string, Workspace>()
      for (const [name, folder] of Object.entries(options.workspaces)) {
        workspaces.set(name, await Workspace.open(name, folder, options))
      }
      const hello: Hello = {
        type: 'hello',
        protocol: toolHostProtocol,
        key: await keyIn(dataFolder),
        name: (options.name || hostname()).slice(0, maxNameLength),
        platform: process.platform,
        workspaces: await Promise.all(
          [...workspaces.values()].map((workspace) =>
            workspace.describe({ sharesFiles: options.sharesFiles ?? true, redactor: redactorOf(options) }),
          ),
        ),
      }
      shorten(hello)
      const host = new ToolHost(options, { hello, workspaces, lock })
      for (const started of await host.#journal.unfinished()) host.#continue(started)
      void host.#clean()
      return host
    } catch (error) {
      lock.release()
      throw error
    }
  }

  /** The number of running calls. */
  get running(): number {
    return this.#calls.size
  }

  /** The connection is open: introduces the host to the service. */
  join(link: HostLink): void {
    this.#links.add(link)
    send(link, this.#introduction)
  }

  /** The connection is closed. Calls continue. */
  leave(link: HostLink): void {
    this.#links.delete(link)
    for (const call of this.#calls.values()) call.leave(link)
    this.#transfers.leave(link)
  }

  /** Takes a message of the service. Ignores malformed ones. */
  take(text: string, link: HostLink): void {
    if (!this.#links.has(link)) return
    const request = parseMessage(hostRequest, text)
    switch (request?.type) {
      case 'call':
        return this.#call(request, link)
      case 'cancel':
        return this.#calls.get(request.id)?.stop()
      case 'reached':
        return this.#calls.get(request.id)?.answer(request.question, request.verdict)
      case 'files':
      case 'part':
      case 'recreate':
      case 'data':
        return this.#transfers.take(request, link)
      case 'jobs':
      case 'job_output':
      case 'stop_job':
        return this.#jobs.take(request, link)
      case 'settled':
        // The rest of a failed cleanup is done when the host is opened again.
        void this.#settle(request.session, request.id).catch(() => undefined)
        return
      case undefined:
        return
      default:
        request satisfies never
    }
  }

  /** Commands continue; a later process of this host finds them again. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    this.#links.clear()
    for (const call of this.#calls.values()) call.suspend()
    await settledWithin(Promise.all(this.#ends), { ms: finishMs })
    await Promise.all([...this.#sessions.values()].map((session) => session.close()))
    this.#lock.release()
  }

  #call(request: CallRequest, link: HostLink): void {
    const running = this.#calls.get(request.id)
    if (running) {
      if (request.isStopped) running.stop()
      return running.join(link, request.from)
    }
    if (this.#calls.size >= maxAsked || this.#closing.signal.aborted) return
    const isBusy = this.#calls.size >= maxCalls
    const call = this.#open(request)
    call.join(link, request.from)
    this.#run(call, () => call.begin({ isBusy }))
  }

  #continue({ request, start }: StartedCall): void {
    const call = this.#open(request)
    this.#run(call, () => call.continue(start))
  }

  #run(call: HostedCall, work: () => ReturnType<HostedCall['begin']>): void {
    const { id } = call.request
    this.#calls.set(id, call)
    const ended = work()
      .catch((error: unknown) => {
        // What fails has not begun.
        if (!(error instanceof SessionSuspended))
          return { type: 'refused', id, reason: this.#redactor.text(hostTexts.failed(error)) } as const
        return undefined
      })
      .then((end) => {
        this.#calls.delete(id)
        this.#ends.delete(ended)
        if (end) call.tell(end)
      })
    this.#ends.add(ended)
  }

  /** Removes results that nobody collects, every day. */
  async #clean(): Promise<void> {
    const { clock = systemClock } = this.#options
    const { signal } = this.#closing
    while (!signal.aborted) {
      for (const { session, id } of await this.#journal.uncollected(clock.now() - keepResultsMs)) {
        await this.#settle(session, id).catch(() => undefined)
      }
      await clock.wait(cleanEveryMs, signal).catch(() => undefined)
    }
  }

  async #settle(session: string, id: string): Promise<void> {
    if ((await this.#journal.state(session, id)).type !== 'done') return
    const started = await this.#journal.started(session, id)
    await this.#journal.settle(session, id)
    if (started) await this.#open(started.request).settle(started.start)
  }

  #open(request: CallRequest): HostedCall {
    const { clock = systemClock } = this.#options
    return new HostedCall(request, {
      journal: this.#journal,
      redactor: this.#redactor,
      clock,
      session: this.#sessionOf(request),
    })
  }

  #sessionOf({ session: id, workspace: name }: CallRequest): WorkspaceSession | undefined {
    const workspace = this.#workspaces.get(name)
    if (!workspace) return undefined
    const key = `${name}/${id}`
    const known = this.#sessions.get(key)
    this.#sessions.delete(key)
    const localFolder = this.#folderOf(id)
    const session = known ?? new WorkspaceSession({ id, localFolder }, workspace, this.#redactor)
    this.#sessions.set(key, session)
    this.#closeUnused()
    return session
  }

  /** Has the spools of a session's commands. */
  #folderOf(session: string): string {
    return join(this.#options.dataFolder, 'sessions', session)
  }

  /** The least recently used ones come first. */
  #closeUnused(): void {
    const used = new Set([...this.#calls.values()].map(({ request }) => `${request.workspace}/${request.session}`))
    for (const [key, session] of this.#sessions) {
      if (this.#sessions.size <= maxSessions) return
      if (used.has(key)) continue
      this.#sessions.delete(key)
      void session.close().catch(() => undefined)
    }
  }
}

/** Leaves out the longest instructions until the introduction can be sent. */
function shorten(hello: Hello): void {
  const all = hello.workspaces.flatMap(({ instructions }) => instructions)
  const texts = all.sort((left, right) => right.text.length - left.text.length)
  for (let isTooLong = true; isTooLong;) {
    isTooLong = Buffer.byteLength(JSON.stringify(hello)) > maxHelloBytes
    const longest = isTooLong ? texts.shift() : undefined
    if (isTooLong && !longest) throw new Error('A tool host cannot offer so many folders. Start several tool hosts.')
    if (longest) longest.text = hostTexts.leftOut
  }
}

/** One folder of this machine, and what may be done in it. */
class Workspace {
  readonly folder: string
  readonly name: string
  readonly mode: HostMode
  readonly sandbox: Sandbox | undefined
  readonly rules: readonly Rule[]
  readonly home: string

  private constructor(name: string, folder: string, sandbox: Sandbox | undefined, options: ToolHostOptions) {
    this.name = name
    this.folder = folder
    this.sandbox = sandbox
    this.mode = options.mode ?? (sandbox ? 'sandboxed' : 'accept-edits')
    this.rules = options.rules ?? []
    this.home = options.home ?? homedir()
  }

  static async open(name: string, given: string, options: ToolHostOptions): Promise<Workspace> {
    const folder = await realpath(given)
    const { sandbox: place, home = homedir(), dataFolder } = options
    const sandbox =
      place &&
      (await Sandbox.open({
        folders: [folder],
        home,
        keep: sandboxFolder(place.folder, folder),
        own: [place.folder, dataFolder, ...place.own],
        ...(place.support && { support: place.support }),
      }))
    return new Workspace(name, folder, sandbox?.support.type === 'none' ? undefined : sandbox, options)
  }

  /** Whether a session may read or write a file, by the rules of this host. */
  mayUse(access: 'read' | 'write', path: string): boolean {
    const { mode, rules, folder: cwd, home } = this
    const policy = { mode, rules: { user: [...rules], project: [], session: [], trustsProject: false }, cwd, home }
    const call = { tool: access, readOnly: access === 'read', access: [{ type: access, path }] }
    return judgeCall(call, { ...policy, hasSandbox: this.sandbox !== undefined }).effect === 'allow'
  }

  async describe({ sharesFiles, redactor }: { sharesFiles: boolean; redactor: Redactor }): Promise<HostedWorkspace> {
    const { name, folder, mode, sandbox } = this
    const { instructions } = await loadInstructions([{ folder, source: 'project', within: folder }])
    const session = new WorkspaceSession({ id: 'none', localFolder: '' }, this, createRedactor())
    return {
      name,
      folder,
      mode,
      ...(sandbox && { sandbox: sandbox.describe() }),
      tools: session.tools.map(({ name: tool, description, inputSchema, readOnly, deadlineMs }) => ({
        name: tool,
        description,
        inputSchema,
        readOnly,
        deadlineMs: deadlineMs === Infinity ? null : deadlineMs,
      })),
      instructions: instructions.map(({ path, text }) => ({ path, text: redactor.text(text) })),
      sharesFiles,
    }
  }
}

/** A session in one folder of this machine. */
class WorkspaceSession implements HostedSession {
  readonly folder: string
  readonly localFolder: string
  readonly tools: readonly Tool[]
  readonly #workspace: Workspace
  readonly #sandbox: SessionSandbox | undefined

  constructor({ id, localFolder }: { id: string; localFolder: string }, workspace: Workspace, redactor: Redactor) {
    const { folder, sandbox, rules } = workspace
    this.folder = folder
    this.localFolder = localFolder
    this.#workspace = workspace
    this.#sandbox =
      sandbox &&
      new SessionSandbox({
        session: { id, localFolder, subscribe: () => () => undefined },
        open: async () => sandbox,
        cwd: folder,
        files: () => undefined,
        rules: () => ({ user: [...rules], project: [], session: [], trustsProject: false }),
      })
    const bash = this.#sandbox && { bash: { sandbox: this.#sandbox } }
    this.tools = allTools({ jobs: new Jobs(), redaction: redactor.policy, ...bash }).filter(({ name }) =>
      needsFiles(name),
    )
  }

  async judge({ tool, access, box: wanted }: JudgedCall): ReturnType<HostedSession['judge']> {
    const { mode, rules, folder, home, sandbox } = this.#workspace
    const outside = access.some(
      (each) => (each.type === 'read' || each.type === 'write') && !isInside(each.path, folder),
    )
    // In mode auto, commands reach everything anyway.
    if (outside && mode !== 'auto') return { refused: hostTexts.outside(folder) }
    const judgement = judgeCall(
      { tool: tool.name, readOnly: tool.readOnly, access },
      {
        mode,
        rules: { user: [...rules], project: [], session: [], trustsProject: false },
        cwd: folder,
        home,
        hasSandbox: sandbox !== undefined,
      },
    )
    if (judgement.effect !== 'allow') return { refused: `The tool host does not allow this. ${judgement.reason}` }
    const commands = access.filter((each) => each.type === 'command')
    const isCommand = commands.length > 0
    // In the sandbox of this host, the sandbox is the boundary. Rules alone let a command show every file that may not have a secret.
    if (mode !== 'auto' && !judgement.box && commands.some((each) => readsOutside(each, { folder, home }))) {
      return { refused: hostTexts.outside(folder) }
    }
    const box = isCommand ? narrower(judgement.box, wanted) : undefined
    if (box && !sandbox) return { refused: 'The tool host has no sandbox, and this may run only in one.' }
    return box ? { box } : {}
  }

  /** Also of a command that continues in the background: this session has no runs whose end would forget it. */
  ended({ session: sessionId, call: callId }: Parameters<HostedSession['ended']>[0]): void {
    this.#sandbox?.leave(sandboxCallId({ sessionId, callId }))
  }

  async close(): Promise<void> {
    await this.#sandbox?.close()
  }
}

/** Whether a command names a file outside of the folder to show it. Links count as the files to which they lead. */
function readsOutside(
  { command, cwd }: Extract<Access, { type: 'command' }>,
  { folder, home }: { folder: string; home: string },
): boolean {
  const place = exactPath(folder)
  const { reads } = readCommandLine(command, { cwd, home })
  return reads.some(({ real }) => {
    const start = real.slice(0, place.length)
    const isExact = start.every((part) => part !== '**' && part.tokens.every((token) => typeof token === 'string'))
    return !isExact || !meetsBelow(start, place)
  })
}

function redactorOf({ redactor }: ToolHostOptions): Redactor {
  return redactor ?? createRedactor(defaultPolicy())
}

function narrower(first: BoxKind | undefined, second: BoxKind | undefined): BoxKind | undefined {
  return first === 'read-only' || second === 'read-only' ? 'read-only' : (first ?? second)
}

/** The same for every process that uses this folder. */
async function keyIn(dataFolder: string): Promise<string> {
  const path = join(dataFolder, 'host-key')
  const known = await readFile(path, 'utf8').catch(() => '')
  if (/^[0-9a-f]{64}$/.test(known)) return known
  const key = randomBytes(32).toString('hex')
  await replaceFile(path, key)
  return key
}

/** Two processes with one journal would take the calls of each other for interrupted ones. */
export class ToolHostInUse extends Error {
  override readonly name = 'ToolHostInUse'

  constructor(dataFolder: string) {
    super(`Another tool host uses the folder ${dataFolder}.`)
  }
}
