import { createVariant, recordVariant, removeCopy, runCheck } from '@tapetree/agent/variants'
import { newId, type Session, type SessionStore } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { failureOf } from '../command-line/failure-of.ts'
import { write, type Io } from '../command-line/io.ts'
import { SessionHost } from '../host/session-host.ts'
import { runClientName } from '../print/hosted-session.ts'
import { PrintSession } from '../print/print-session.ts'
import { outcomeInLog } from '../print/printed-run.ts'
import { toolLine } from '../print/progress.ts'
import { RequestRefuser } from '../print/refuse-requests.ts'
import { fitText } from '../text/display-width.ts'
import { harmlessLine } from '../text/harmless.ts'
import type { PreparedVariants } from './prepare-variants.ts'
import type { VariantsOptions } from './variants-options.ts'
import { VariantsProgress } from './variants-progress.ts'
import { diffSize, patchText, variantsTable, type VariantState } from './variants-table.ts'

export type StopReason = 'interrupted' | 'cost'

/** The variants of one prompt, with everything that runs them. */
export class VariantsWork implements AsyncDisposable {
  readonly id = newId()
  readonly variants: VariantState[]
  readonly #options: VariantsOptions
  readonly #io: Io
  readonly #store: SessionStore
  readonly #prepared: PreparedVariants
  readonly #host: SessionHost
  readonly #progress: VariantsProgress
  /** Held until the end, so that no other process takes them for leftovers. */
  readonly #sessions = new Map<number, Session>()
  readonly #running = new Set<PrintSession>()
  readonly #stopping = new AbortController()
  readonly #interrupt = (): void => this.#stop('interrupted')
  readonly #ownsFiles: Promise<void>
  stopped: StopReason | undefined

  private constructor(
    options: VariantsOptions,
    { io, store, prepared, host }: { io: Io; store: SessionStore; prepared: PreparedVariants; host: SessionHost },
  ) {
    this.#options = options
    this.#io = io
    this.#store = store
    this.#prepared = prepared
    this.#host = host
    const { models } = prepared
    this.variants = Array.from({ length: options.count }, (_, index) => {
      const model = models[index % models.length]
      const name = model ? `${model.provider}/${model.modelId}` : ''
      return { number: index + 1, model: name, phase: 'waiting' as const, activity: '', cost: 0 }
    })
    this.#progress = new VariantsProgress(io, this.variants)
    // The copies must not depend on objects that the user may prune.
    this.#ownsFiles = prepared.files.own().catch(() => undefined)
    if (io.signal.aborted) this.#interrupt()
    io.signal.addEventListener('abort', this.#interrupt, { once: true })
  }

  static async open(
    options: VariantsOptions,
    { io, store, prepared }: { io: Io; store: SessionStore; prepared: PreparedVariants },
  ): Promise<VariantsWork> {
    const { flags, systemPrompt, toolNames, traceUrl } = options.run
    const host = await SessionHost.open({
      io,
      store,
      owner: 'terminal',
      flags,
      agent: { ...(systemPrompt !== undefined && { systemPrompt }), ...(toolNames && { toolNames }) },
      clientName: runClientName,
      traceUrl,
      onProblem: ({ source, message }) => work?.notice(`${source}: ${message}`),
    })
    const work: VariantsWork | undefined = new VariantsWork(options, { io, store, prepared, host })
    for (const notice of prepared.notices) work.notice(notice)
    for (const { path, bytes } of prepared.plan.tooLarge) {
      const size = `${Math.ceil(bytes / 1024 ** 2).toLocaleString('en-US')} MiB`
      work.notice(`The copies do not have ${path} (more than ${size}). If the variants need it, use --setup.`)
    }
    return work
  }

  get cost(): number {
    return this.variants.reduce((sum, { cost }) => sum + cost, 0)
  }

  notice(sentence: string): void {
    this.#progress.notice(sentence)
  }

  /** The session of a variant. */
  session({ number }: VariantState): Session | undefined {
    return this.#sessions.get(number)
  }

  /** Resolves when every variant has ended or was stopped. */
  async run(): Promise<void> {
    const rest = this.variants.values()
    const runRest = async (): Promise<void> => {
      for (const variant of rest) await this.#runOne(variant)
    }
    await Promise.all(Array.from({ length: this.#options.parallel }, runRest))
    this.#progress.close()
    this.#io.signal.removeEventListener('abort', this.#interrupt)
    if (this.#options.run.format === 'json') return
    await write(this.#io.stdout, variantsTable(this.variants, this.#io.stdout.columns))
    for (const { number, failure, check } of this.variants) {
      const said = check && check.exitCode !== 0 ? lastLine(check.output) : ''
      if (said !== '') await write(this.#io.stderr, `! Variant ${number}, check: ${said}\n`)
      if (failure) await write(this.#io.stderr, `! Variant ${number}: ${harmlessLine(failure.message)}\n`)
    }
  }

  /** Of variants that were stopped before they had changed a file, nothing is kept. */
  async removeUnchanged(): Promise<void> {
    for (const variant of this.variants) {
      const session = this.session(variant)
      const copy = session?.workingCopy
      if (session && copy && (variant.tree ?? copy.tree) === copy.tree) {
        await removeCopy(session, this.#prepared.places)
        delete variant.folder
      }
    }
  }

  /** What a variant changed. */
  async patch({ tree }: VariantState): Promise<string> {
    const { files, snapshot } = this.#prepared
    return tree === undefined ? '' : patchText(files, { from: snapshot.tree, to: tree })
  }

  /** Removes all copies. */
  async removeAll(): Promise<void> {
    for (const session of this.#sessions.values()) await removeCopy(session, this.#prepared.places)
    for (const variant of this.variants) delete variant.folder
  }

  /** Gives up the sessions, so that one of them can be chosen. */
  async release(): Promise<void> {
    for (const session of this.#sessions.values()) await session.close()
    this.#sessions.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#progress.close()
    this.#io.signal.removeEventListener('abort', this.#interrupt)
    await this.release()
    await this.#host.close()
    await this.#ownsFiles
  }

  async #runOne(variant: VariantState): Promise<void> {
    if (this.#stopping.signal.aborted) return this.#end(variant, 'not-run')
    variant.startedAtMs = performance.now()
    try {
      const session = await this.#make(variant)
      if (!(await this.#setUp(variant, session))) return this.#end(variant, 'not-run')
      const outcome = await this.#prompt(variant, session.id)
      await this.#measure(variant, session)
      if (!this.#stopping.signal.aborted) await this.#check(variant, session)
      this.#end(variant, this.#stopping.signal.aborted ? 'stopped' : outcome)
    } catch (error) {
      const isStopped = this.#stopping.signal.aborted
      if (!isStopped) variant.failure = failureOf(error)
      this.#end(variant, isStopped ? 'stopped' : variant.phase === 'working' ? 'failed' : 'not-run')
    }
  }

  #enter(variant: VariantState, phase: VariantState['phase']): void {
    variant.phase = phase
    variant.activity = ''
    this.#progress.changed(variant)
  }

  #end(variant: VariantState, outcome: NonNullable<VariantState['outcome']>): void {
    variant.outcome = outcome
    if (variant.startedAtMs !== undefined) variant.durationMs = performance.now() - variant.startedAtMs
    this.#enter(variant, 'ended')
  }

  /** The session and its working copy. */
  async #make(variant: VariantState): Promise<Session> {
    const { source, folder, places, files: store, snapshot, plan, models, prompt } = this.#prepared
    this.#enter(variant, 'copying')
    const model = models[(variant.number - 1) % models.length]
    const id = await (source ? this.#fork(source) : this.#host.create({ cwd: folder, ...(model && { model }) }))
    const session = await this.#store.open(id)
    this.#sessions.set(variant.number, session)
    variant.sessionId = id
    const { count } = this.#options
    const variants = { id: this.id, number: variant.number, count }
    const copy = await createVariant(session, { places, store, folder, snapshot, plan, variants })
    variant.folder = copy.folder
    const about = harmlessLine((prompt?.text ?? '').split('\n', 1)[0] ?? '')
    await session.appendSessionInfo(fitText(`Variant ${variant.number} of ${count}: ${about}`, 100))
    return session
  }

  async #fork({ id, leafId }: NonNullable<PreparedVariants['source']>): Promise<string> {
    await using from = await this.#store.open(id, { readOnly: true })
    const header = { cwd: this.#prepared.folder }
    return await (leafId === null ? from.copyAll(header) : from.createBranchedSession(leafId, header))
  }

  /** Whether the command for new copies succeeded. */
  async #setUp(variant: VariantState, session: Session): Promise<boolean> {
    const { setup, checkTimeoutMs: timeoutMs } = this.#options
    const cwd = variant.folder ?? ''
    if (setup === undefined) return true
    this.#enter(variant, 'setting up')
    const ended = await runCheck(setup, { cwd, environment: this.#io.env, timeoutMs, signal: this.#stopping.signal })
    await recordVariant(session, { places: this.#prepared.places, by: 'outside' })
    if (ended.exitCode === 0) return true
    const said = lastLine(ended.output)
    variant.failure = new Failure(exitCodes.runFailed, `--setup failed with exit code ${ended.exitCode}. ${said}`, {
      type: 'setup-failed',
    })
    return false
  }

  async #prompt(variant: VariantState, sessionId: string): Promise<'completed' | 'failed'> {
    const { models, source, prompt } = this.#prepared
    const { thinkingLevel, timeoutMs } = this.#options.run
    this.#enter(variant, 'working')
    const { handle } = await this.#host.open(sessionId)
    let timer: NodeJS.Timeout | undefined
    const refuser: RequestRefuser = new RequestRefuser({
      handle,
      isOurs: () => true,
      isSomebodyThere: () => false,
      onWaiting: () => undefined,
      onUnanswered: () => undefined,
    })
    const print = new PrintSession({
      handle,
      isOwner: () => true,
      refusalsTo: (runId) => refuser.to(runId),
      findOutcome: (sought) => outcomeInLog(this.#store, sought),
      onTaken: () => refuser.look(),
    })
    this.#running.add(print)
    const costBefore = handle.transcript.usage.cost
    const unsubscribe = handle.subscribe(() => {
      const { transcript } = handle
      variant.cost = transcript.usage.cost - costBefore
      const { model } = handle.state('config') ?? {}
      if (model) variant.model = `${model.provider}/${model.modelId}`
      const last = transcript.path.items.at(-1)
      const call = last?.type === 'assistant' ? last.parts.findLast((part) => part.type === 'tool_call') : undefined
      if (call) variant.activity = toolLine(call)
      const { maxCost } = this.#options
      if (maxCost !== undefined && this.cost >= maxCost) this.#stop('cost')
    })
    try {
      const model = models[(variant.number - 1) % models.length]
      if ((source && model) || thinkingLevel !== undefined)
        await handle.set({ ...(source && model && { model }), ...(thinkingLevel !== undefined && { thinkingLevel }) })
      const imageIds = await Promise.all((prompt?.images ?? []).map((each) => this.#host.keepImage(sessionId, each)))
      if (timeoutMs !== undefined) timer = setTimeout(() => print.stop('timeout'), timeoutMs)
      if (this.#stopping.signal.aborted) print.stop('interrupted')
      const { ended } = await print.send('prompt', prompt?.text ?? '', imageIds)
      const { failure } = await ended
      if (failure && !this.#stopping.signal.aborted) variant.failure = failure
      return failure ? 'failed' : 'completed'
    } finally {
      clearTimeout(timer)
      unsubscribe()
      this.#running.delete(print)
      refuser.close()
      print.close()
      await handle.close()
      await this.#host.sessions.release(sessionId)
    }
  }

  async #measure(variant: VariantState, session: Session): Promise<void> {
    const { places, files, snapshot } = this.#prepared
    variant.tree = await recordVariant(session, { places, by: 'agent' })
    variant.diff = await diffSize(files, { from: snapshot.tree, to: variant.tree })
  }

  async #check(variant: VariantState, session: Session): Promise<void> {
    const { check, checkTimeoutMs: timeoutMs } = this.#options
    if (check === undefined) return
    this.#enter(variant, 'checking')
    const { signal } = this.#stopping
    const ended = await runCheck(check, { cwd: variant.folder ?? '', environment: this.#io.env, timeoutMs, signal })
    if (signal.aborted) return
    variant.check = ended
    const { exitCode, durationMs } = ended
    const tree = variant.tree ?? ''
    const treeAfter = await recordVariant(session, { places: this.#prepared.places, by: 'job' })
    await session.append({
      type: 'check',
      check: {
        command: check,
        exitCode,
        durationMs,
        tree,
        ...(treeAfter !== tree && { treeAfter }),
        ...(session.leafId !== null && { entryId: session.leafId }),
      },
    })
  }

  #stop(reason: StopReason): void {
    if (this.stopped) return
    this.stopped = reason
    this.#progress.notice(reason === 'cost' ? 'The variants have reached --max-cost. Stopping.' : 'Stopping.')
    this.#stopping.abort()
    for (const print of this.#running) print.stop('interrupted')
  }
}

function lastLine(output: string): string {
  return fitText(harmlessLine(output.trimEnd().split('\n').at(-1) ?? ''), 100)
}
