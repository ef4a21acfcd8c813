import { settledWithin } from '@tapetree/session/util/deadline'
import type { Clock } from '@tapetree/session/util/wait'
import { open } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { z } from 'zod'
import { inBox, type BoxProgram } from '../tools/commands/program-box.ts'
import { isInside } from '../util/is-inside.ts'
import { languageIdOf, type FoundServer } from './known-servers.ts'
import { ServerError, ServerProcess } from './server-process.ts'
import { plainText } from './server-text.ts'
import { askTsserver, tsserverCommand } from './tsserver.ts'

/** A problem in a file. Line and column are counted from 1. */
export interface Diagnostic {
  line: number
  column: number
  severity: 'error' | 'warning'
  /** With its source and code, without line breaks, and cut. */
  message: string
}

export interface LanguageServerState {
  /** With the folder that it works on, if that is not the whole workspace. */
  name: string
  /** It is starting until it has answered for the first time. */
  status: 'starting' | 'running' | 'failed'
  /** Why it has failed: a sentence. */
  problem?: string
  /** Only if it has failed: when the next edit may start it again, in milliseconds since 1970. Null: it has failed too often. */
  retryAt?: number | null
  /** In all files, when it last said something about them. */
  errors: number
  warnings: number
}

export interface LanguageServerOptions {
  server: FoundServer
  /** What it says about files outside is ignored. */
  workspace: string
  env: Readonly<Record<string, string>>
  clock: Clock
  box?: BoxProgram | undefined
  /** Called when its state has changed. */
  onChange?: () => void
}

const maxFileBytes = 1024 * 1024
/** Of one question too. */
export const maxOpenFiles = 64
const maxPublishedFiles = 500
/** In all files that it publishes; the rest is dropped. */
const maxPublished = 10_000
const maxPerFile = 100
const maxMessageLength = 300
/** A server that does not answer for so long is ended, and started again later. */
const startMs = 60_000
const answerMs = 20_000
/** Before its first answer it reads the project. */
const firstAnswerMs = 60_000
/** Without version 3.17 of the protocol a server says by itself what it has found, and never that it has found nothing yet. */
const publishMs = 5000
/** Without a version it may say more about the same text, such as type errors after syntax errors. */
const quietMs = 500
/** Before it has published anything, it reads the project. */
const firstPublishMs = 30_000
const maxStarts = 5
/** A server that has run for so long, and has answered, may fail as often as a new one. */
const healthyMs = 600_000
/** How often a question is asked that the server cancels. */
const maxAsked = 5
/** `ContentModified` and `ServerCancelled`: the server was at something else, and can be asked again. */
const cancelCodes: readonly unknown[] = [-32801, -32802]
const firstPauseMs = 1000

const position = z.object({ line: z.int().nonnegative(), character: z.int().nonnegative() })
const diagnosticSchema = z.object({
  range: z.object({ start: position }),
  severity: z.int().optional(),
  code: z.union([z.string(), z.number()]).optional(),
  source: z.string().optional(),
  message: z.string(),
})
const publishedSchema = z.object({
  uri: z.string(),
  version: z.int().nullish(),
  diagnostics: z.array(z.unknown()),
})
const reportSchema = z.object({ items: z.array(z.unknown()).optional() })
const initializedSchema = z.object({
  capabilities: z.object({
    diagnosticProvider: z.unknown().optional(),
    executeCommandProvider: z.object({ commands: z.array(z.string()) }).optional(),
  }),
})

interface OpenFile {
  version: number
  text: string
}

interface Running {
  process: ServerProcess
  /** What it answers about a file, as diagnostics of the protocol. Absent: it cannot be asked, and publishes what it finds. */
  ask: ((path: string) => Promise<readonly unknown[]>) | undefined
  files: Map<string, OpenFile>
  publications: Publications
}

interface Publications {
  byPath: Map<string, Diagnostic[]>
  /** What the open question waits for. */
  awaited: AwaitedVersions | undefined
}

/** One language server, started when it is needed and again after it has failed, later each time. */
export class LanguageServer {
  readonly #options: LanguageServerOptions
  #running: Promise<Running> | undefined
  #process: ServerProcess | undefined
  #starts = 0
  #notBefore = 0
  #startedAt = 0
  #isClosed = false
  #problem: string | undefined
  #publishedLate = 0
  #hasAnswered = false
  /** What it last found, by path. */
  readonly #counts = new Map<string, Counts>()
  #told = ''
  /** One question at a time, so that a file has one version. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: LanguageServerOptions) {
    this.#options = options
  }

  get name(): string {
    return this.#options.server.name
  }

  /** The folder that it works on. */
  get root(): string {
    return this.#options.server.root
  }

  /** Why it does not run, as a sentence. */
  get problem(): string | undefined {
    return this.#problem
  }

  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /** Undefined if it was never started. */
  get state(): LanguageServerState | undefined {
    if (this.#starts === 0) return undefined
    const counts = [...this.#counts.values()]
    const errors = counts.reduce((sum, each) => sum + each.errors, 0)
    const warnings = counts.reduce((sum, each) => sum + each.warnings, 0)
    const found = { name: this.name, errors, warnings }
    if (this.isRunning) return { ...found, status: this.#hasAnswered ? 'running' : 'starting' }
    const retryAt = this.#starts < maxStarts ? this.#notBefore : null
    return { ...found, status: 'failed', problem: this.#problem ?? '', retryAt }
  }

  /** How often it has published something after it was waited for. */
  get publishedLate(): number {
    return this.#publishedLate
  }

  /** The diagnostics of these files as they are on disk, and of others that it has published. Rejects if the server fails. */
  diagnose(paths: readonly string[]): Promise<Map<string, Diagnostic[]>> {
    const found = this.#turn.then(() => this.#diagnose(paths))
    this.#turn = found.catch(() => undefined)
    return found
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#process?.end('It was closed.')
    await this.#running?.catch(() => undefined)
  }

  async #diagnose(paths: readonly string[]): Promise<Map<string, Diagnostic[]>> {
    const running = await this.#start()
    const { publications } = running
    const awaited = new AwaitedVersions()
    // It may publish what it finds in one file while the next is read.
    publications.awaited = awaited
    const found = await this.#find(running, paths, awaited).finally(() => (publications.awaited = undefined))
    const all = new Map([...publications.byPath, ...found])
    this.#count(running, all)
    return all
  }

  async #find(
    running: Running,
    paths: readonly string[],
    awaited: AwaitedVersions,
  ): Promise<Map<string, Diagnostic[]>> {
    for (const path of paths) {
      const version = await syncFile(running, path)
      if (version !== undefined) awaited.expect(path, version)
    }
    const present = paths.filter((path) => running.files.has(path))
    const { ask } = running
    if (!ask) return this.#published(running, present, awaited)
    return this.#answered(running, Promise.all(present.map((path) => answerOf(ask, path))))
  }

  #count({ files, publications }: Running, found: ReadonlyMap<string, readonly Diagnostic[]>): void {
    this.#hasAnswered = true
    for (const [path, diagnostics] of found) this.#counts.set(path, countsOf(diagnostics))
    for (const path of [...this.#counts.keys()]) {
      if (!files.has(path) && !publications.byPath.has(path)) this.#counts.delete(path)
    }
    this.#tellChange()
  }

  #tellChange(): void {
    const state = JSON.stringify(this.state)
    if (state === this.#told || this.#isClosed) return
    this.#told = state
    this.#options.onChange?.()
  }

  async #answered({ process }: Running, answers: Promise<readonly FileAnswer[]>): Promise<Map<string, Diagnostic[]>> {
    const ms = this.#hasAnswered ? answerMs : firstAnswerMs
    const outcome = await settledWithin(answers, { ms, clock: this.#options.clock })
    if (outcome !== 'settled') await process.end(`It did not answer for ${ms / 1000} s.`)
    const given = await answers
    const errors = given.flatMap(({ error }) => (error ? [error] : []))
    if (errors[0] && errors.length === given.length) throw errors[0]
    return new Map(given.flatMap(({ path, diagnostics }) => (diagnostics ? [[path, diagnostics] as const] : [])))
  }

  /** Waits some seconds for what it publishes. A file of which it says nothing has no problems, as far as the server knows. */
  async #published(
    { process, publications: { byPath } }: Running,
    paths: readonly string[],
    awaited: AwaitedVersions,
  ): Promise<Map<string, Diagnostic[]>> {
    const { clock } = this.#options
    const told = Promise.race([awaited.all(), process.ended])
    const ms = byPath.size === 0 ? firstPublishMs : publishMs
    await settledWithin(told, { ms, clock })
    for (let waitedMs = 0; awaited.mayContinue && waitedMs < publishMs; waitedMs += quietMs) {
      const { count } = awaited
      await settledWithin(process.ended, { ms: quietMs, clock })
      if (awaited.count === count) break
    }
    return new Map(paths.map((path) => [path, byPath.get(path) ?? []]))
  }

  #start(): Promise<Running> {
    if (this.#isClosed) return Promise.reject(new Error('The language server is closed.'))
    if (this.#running) return this.#running
    const { clock } = this.#options
    if (this.#starts >= maxStarts || clock.now() < this.#notBefore)
      return Promise.reject(new Error(this.#problem ?? `${this.name} is not running.`))
    this.#startedAt = clock.now()
    this.#notBefore = this.#startedAt + firstPauseMs * 2 ** this.#starts
    this.#starts++
    this.#hasAnswered = false
    const started = this.#launch()
    this.#running = started
    this.#tellChange()
    started.catch((error: unknown) => this.#failed(started, error instanceof Error ? error.message : String(error)))
    return started
  }

  async #launch(): Promise<Running> {
    const { server, env, clock, box } = this.#options
    const { root, name } = server
    const boxed = await box?.({ type: 'language-server', name, cwd: root })
    const publications: Publications = { byPath: new Map(), awaited: undefined }
    const process = new ServerProcess({
      program: { ...inBox({ ...server, env }, boxed), cwd: root },
      clock,
      onRequest: answerServer,
      onNotification: (method, params) => {
        if (method === 'textDocument/publishDiagnostics') this.#takePublished(params, publications)
      },
    })
    this.#process = process
    if (this.#isClosed) await process.end('It was closed.')
    const answer = process.request('initialize', initialize(root))
    if ((await settledWithin(answer, { ms: startMs, clock })) !== 'settled')
      await process.end('It did not start in time.')
    const { capabilities } = await answer
      .then((given) => initializedSchema.parse(given))
      .catch(async (error: unknown) => {
        await process.end('It could not be initialized.')
        throw error
      })
    process.notify('initialized', {})
    const running: Running = {
      process,
      ask: questionFor(process, capabilities),
      files: new Map(),
      publications,
    }
    void process.ended.then((reason) => this.#failed(this.#running, reason))
    return running
  }

  #failed(started: Promise<Running> | undefined, reason: string): void {
    if (this.#running !== started || this.#isClosed) return
    this.#running = undefined
    this.#problem = `The language server ${this.name} is gone. ${plainText(reason, maxMessageLength)}`
    this.#counts.clear()
    const now = this.#options.clock.now()
    if (this.#hasAnswered && now - this.#startedAt >= healthyMs) {
      this.#starts = 1
      this.#notBefore = now + firstPauseMs
    }
    this.#tellChange()
  }

  #takePublished(params: unknown, { byPath, awaited }: Publications): void {
    const { data } = publishedSchema.safeParse(params)
    const path = data && this.#pathIn(data.uri)
    if (!data || path === undefined) return
    if (byPath.has(path) || byPath.size < maxPublishedFiles) {
      byPath.set(path, [])
      byPath.set(path, readDiagnostics(data.diagnostics).slice(0, roomIn(byPath)))
      if (!awaited?.expects(path)) this.#takeLate(path, byPath.get(path))
    }
    awaited?.take(path, data.version ?? undefined)
  }

  #takeLate(path: string, diagnostics: readonly Diagnostic[] = []): void {
    this.#publishedLate++
    this.#counts.set(path, countsOf(diagnostics))
    this.#tellChange()
  }

  /** Undefined if the address is not that of a file in the workspace. */
  #pathIn(uri: string): string | undefined {
    const path = pathOf(uri)
    if (path === undefined || !isInside(path, this.#options.workspace)) return undefined
    return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(path) ? undefined : path
  }
}

/** What a server said about a file, or why it said nothing. */
interface FileAnswer {
  path: string
  diagnostics?: Diagnostic[]
  error?: ServerError
}

/** An error of the server about one file does not hide what it says about others. Rejects if the server is gone. */
async function answerOf(ask: NonNullable<Running['ask']>, path: string): Promise<FileAnswer> {
  for (let asked = 1; ; asked++) {
    try {
      return { path, diagnostics: readDiagnostics(await ask(path)) }
    } catch (error) {
      if (!(error instanceof ServerError)) throw error
      if (asked === maxAsked || !cancelCodes.includes(error.code)) return { path, error }
    }
  }
}

function questionFor(
  process: ServerProcess,
  { diagnosticProvider, executeCommandProvider }: z.output<typeof initializedSchema>['capabilities'],
): Running['ask'] {
  if (diagnosticProvider)
    return async (path) => {
      const textDocument = { uri: pathToFileURL(path).href }
      return reportSchema.parse(await process.request('textDocument/diagnostic', { textDocument })).items ?? []
    }
  const canAskTsserver = executeCommandProvider?.commands.includes(tsserverCommand) === true
  return canAskTsserver ? (path) => askTsserver(process, path) : undefined
}

/** Which of the versions that a server was told it has said something about. */
class AwaitedVersions {
  readonly #expected = new Map<string, number>()
  /** Servers may leave out the version. */
  readonly #told = new Map<string, number>()
  readonly #all = Promise.withResolvers<void>()
  #isComplete = false
  #hasVersions = true
  #count = 0

  /** How often it has published something. */
  get count(): number {
    return this.#count
  }

  /** Without versions nothing says that it has finished. */
  get mayContinue(): boolean {
    return !this.#hasVersions
  }

  expect(path: string, version: number): void {
    this.#expected.set(path, version)
  }

  expects(path: string): boolean {
    return this.#expected.has(path)
  }

  take(path: string, version: number | undefined): void {
    this.#count++
    this.#hasVersions &&= version !== undefined
    this.#told.set(path, Math.max(version ?? Infinity, this.#told.get(path) ?? 0))
    this.#look()
  }

  /** Called when all versions are expected. */
  all(): Promise<void> {
    this.#isComplete = true
    this.#look()
    return this.#all.promise
  }

  #look(): void {
    if (!this.#isComplete) return
    if ([...this.#expected].every(([path, version]) => (this.#told.get(path) ?? 0) >= version)) this.#all.resolve()
  }
}

/** Returns the version that the server was told; undefined if nothing has changed, or if there is no such text file. */
async function syncFile({ process, files }: Running, path: string): Promise<number | undefined> {
  const text = await readText(path)
  const uri = pathToFileURL(path).href
  const before = files.get(path)
  if (text === undefined) {
    if (before) process.notify('textDocument/didClose', { textDocument: { uri } })
    files.delete(path)
    return undefined
  }
  const isChanged = before?.text !== text
  const version = (before?.version ?? 0) + (isChanged ? 1 : 0)
  // Those that were asked about last stand last, and stay open.
  files.delete(path)
  files.set(path, { version, text })
  if (!isChanged) return undefined
  if (before) process.notify('textDocument/didChange', { textDocument: { uri, version }, contentChanges: [{ text }] })
  else process.notify('textDocument/didOpen', { textDocument: { uri, languageId: languageIdOf(path), version, text } })
  process.notify('textDocument/didSave', { textDocument: { uri } })
  for (const oldest of [...files.keys()].slice(0, Math.max(0, files.size - maxOpenFiles))) {
    files.delete(oldest)
    process.notify('textDocument/didClose', { textDocument: { uri: pathToFileURL(oldest).href } })
  }
  return version
}

async function readText(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    return size > maxFileBytes ? undefined : await file.readFile('utf8')
  } catch {
    return undefined // deleted, or not a file
  }
}

function initialize(root: string): object {
  const rootUri = pathToFileURL(root).href
  return {
    // In a sandbox the server does not see our process, and would end.
    processId: null,
    rootUri,
    workspaceFolders: [{ uri: rootUri, name: 'workspace' }],
    capabilities: {
      textDocument: {
        synchronization: { didSave: true },
        publishDiagnostics: { versionSupport: true },
        diagnostic: { relatedDocumentSupport: false },
      },
      workspace: { configuration: true, workspaceFolders: true },
    },
  }
}

/** Settings are the server's own. */
function answerServer(method: string, params: unknown): unknown {
  if (method !== 'workspace/configuration') return null
  const { items } = (params ?? {}) as { items?: unknown }
  return Array.isArray(items) ? items.slice(0, 100).map(() => null) : []
}

function pathOf(uri: string): string | undefined {
  try {
    return fileURLToPath(uri)
  } catch {
    return undefined // not the address of a file on this machine
  }
}

interface Counts {
  errors: number
  warnings: number
}

function countsOf(diagnostics: readonly Diagnostic[]): Counts {
  const errors = diagnostics.filter(({ severity }) => severity === 'error').length
  return { errors, warnings: diagnostics.length - errors }
}

function roomIn(published: ReadonlyMap<string, readonly Diagnostic[]>): number {
  return Math.max(0, maxPublished - [...published.values()].reduce((sum, { length }) => sum + length, 0))
}

/** Errors and warnings; what does not fit the protocol is left out. */
function readDiagnostics(items: readonly unknown[]): Diagnostic[] {
  return items.slice(0, maxPerFile).flatMap((item): Diagnostic[] => {
    const read = diagnosticSchema.safeParse(item)
    if (!read.success || (read.data.severity ?? 1) > 2) return []
    const { range, severity = 1, code, source, message } = read.data
    const origin = [source, code].filter((part) => part !== undefined).join(' ')
    return [
      {
        line: range.start.line + 1,
        column: range.start.character + 1,
        severity: severity === 1 ? 'error' : 'warning',
        message: plainText(origin === '' ? message : `${message} (${origin})`, maxMessageLength),
      },
    ]
  })
}
