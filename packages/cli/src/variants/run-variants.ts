import {
  CopyProblem,
  createVariant,
  listCopies,
  planCopies,
  recordVariant,
  removeCopy,
  runCheck,
  type CopyPlan,
  type VariantPlaces,
} from '@tapetree/agent/variants'
import { SnapshotsOff, SnapshotStore, type Snapshot } from '@tapetree/agent/workspace'
import { newId, type ModelReference, type Session, type SessionStore } from '@tapetree/session'
import { exitCodes, type ExitCode } from '../command-line/exit-code.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import { failureOf } from '../command-line/failure-of.ts'
import { askLine, isInteractive, printJson, write, type Io } from '../command-line/io.ts'
import { openStore } from '../host/open-store.ts'
import { placesOf } from '../host/places.ts'
import { SessionHost } from '../host/session-host.ts'
import { checkSetup } from '../print/check-setup.ts'
import type { ComposedPrompt } from '../print/compose-prompt.ts'
import { runClientName } from '../print/hosted-session.ts'
import { meantSession, promptFrom } from '../print/print-run.ts'
import { PrintSession } from '../print/print-session.ts'
import { outcomeInLog } from '../print/printed-run.ts'
import { toolLine } from '../print/progress.ts'
import { RequestRefuser } from '../print/refuse-requests.ts'
import { counted } from '../text/amounts.ts'
import { fitText } from '../text/display-width.ts'
import { harmlessLine } from '../text/harmless.ts'
import { chooseVariant, choiceText, variantPlaces, type ChosenVariant } from './choose-variant.ts'
import type { VariantsOptions } from './variants-options.ts'
import { VariantsProgress } from './variants-progress.ts'
import { bestVariant, diffSize, patchText, variantJson, variantsTable, type VariantState } from './variants-table.ts'

/** `tapetree run --variants`: from the options to the exit code. */
export async function runVariants(options: VariantsOptions, io: Io): Promise<ExitCode> {
  const store = await openStore(placesOf(io))
  try {
    const prepared = await prepare(options, { io, store })
    await tellOfLeftovers(prepared.places, io)
    await using work = await Work.open(options, { io, store, prepared })
    await work.run()
    const { stopped } = work
    const chosen = stopped ? undefined : await choose(options, { io, store, work })
    if (stopped) await work.removeUnchanged()
    const variants = work.variants.map(variantJson)
    const cost = work.cost
    if (options.run.format === 'json')
      await printJson(io, { variants_id: work.id, folder: prepared.folder, cost, variants, chosen: chosenJson(chosen) })
    const failure = stopped ? stoppedFailure(stopped, work) : outcomeFailure(options, { work, chosen })
    // After a signal only the exit code is reported.
    if (stopped === 'interrupted')
      await write(io.stderr, `! ${failure?.why} To see what is left: tapetree variants list\n`)
    if (failure) throw failure
    return exitCodes.ok
  } finally {
    await store.close()
  }
}

interface Prepared {
  folder: string
  prompt: ComposedPrompt | undefined
  models: (ModelReference | undefined)[]
  notices: string[]
  places: VariantPlaces
  /** The session to fork, and the entry. */
  source: { id: string; leafId: string | null } | undefined
  files: SnapshotStore
  snapshot: Snapshot
  plan: CopyPlan
}

/** Checks what can fail before anything is created. */
async function prepare(
  { run, models: typed, count }: VariantsOptions,
  { io, store }: { io: Io; store: SessionStore },
): Promise<Prepared> {
  const places = variantPlaces(io, store)
  const meant = run.session === undefined ? undefined : await meantSession(store, run.session, io.cwd)
  const folder = meant?.cwd ?? io.cwd
  const { flags, toolNames } = run
  const models: Prepared['models'] = []
  const notices = new Set<string>()
  for (const model of typed.length === 0 ? [undefined] : typed) {
    const setup = await checkSetup({ io: { ...io, cwd: folder }, flags, model, toolNames, isNew: !meant })
    models.push(setup.model)
    for (const notice of setup.notices) notices.add(notice)
  }
  const prompt = await promptFrom(run, io)
  const source = meant && (await sourceOf(store, meant.id))
  const { storesFolder, copiesFolder } = places
  try {
    const files = await SnapshotStore.open({ folder, storesFolder })
    const snapshot = await files.take()
    const plan = await planCopies(files, { tree: snapshot.tree, count, folder: copiesFolder })
    return { folder, prompt, models, notices: [...notices], places, source, files, snapshot, plan }
  } catch (error) {
    if (!(error instanceof SnapshotsOff || error instanceof CopyProblem)) throw error
    throw new Failure(exitCodes.runFailed, `${error.message} Variants work in copies of the folder.`, {
      type: 'no-working-copies',
      next: ['tapetree run "…"'],
      cause: error,
    })
  }
}

async function sourceOf(store: SessionStore, id: string): Promise<Prepared['source']> {
  await using session = await store.open(id, { readOnly: true })
  if (session.workingCopy && session.workingCopy.outcome === undefined)
    throw usageFailure(`Session ${id} is a variant that works in a copy. Choose or remove it first.`, [
      `tapetree variants choose ${id}`,
      `tapetree variants remove ${id}`,
    ])
  return { id, leafId: session.leafId }
}

async function tellOfLeftovers(places: VariantPlaces, { stderr }: Io): Promise<void> {
  const left = (await listCopies(places)).filter(({ isInUse }) => !isInUse)
  if (left.length === 0) return
  await write(
    stderr,
    `! ${counted(left.length, 'working copy', 'working copies')} of earlier variants ` +
      `${left.length === 1 ? 'is' : 'are'} left. To see them: tapetree variants list\n`,
  )
}

type StopReason = 'interrupted' | 'cost'

/** The variants of one prompt, with everything that runs them. */
class Work implements AsyncDisposable {
  readonly id = newId()
  readonly variants: VariantState[]
  readonly #options: VariantsOptions
  readonly #io: Io
  readonly #store: SessionStore
  readonly #prepared: Prepared
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
    { io, store, prepared, host }: { io: Io; store: SessionStore; prepared: Prepared; host: SessionHost },
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
    { io, store, prepared }: { io: Io; store: SessionStore; prepared: Prepared },
  ): Promise<Work> {
    const { flags, systemPrompt, toolNames } = options.run
    const host = await SessionHost.open({
      io,
      store,
      owner: 'terminal',
      flags,
      agent: { ...(systemPrompt !== undefined && { systemPrompt }), ...(toolNames && { toolNames }) },
      clientName: runClientName,
      onProblem: ({ source, message }) => work?.notice(`${source}: ${message}`),
    })
    const work: Work | undefined = new Work(options, { io, store, prepared, host })
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

  async #fork({ id, leafId }: NonNullable<Prepared['source']>): Promise<string> {
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

/** Chooses as the command line says, or asks. Undefined if none was chosen. */
async function choose(
  options: VariantsOptions,
  { io, store, work }: { io: Io; store: SessionStore; work: Work },
): Promise<ChosenVariant | undefined> {
  const { choose: typed, check, conflicts } = options
  const candidates = work.variants.filter(({ diff }) => diff !== undefined)
  if (typed === 'none') {
    await work.removeAll()
    return undefined
  }
  const isAsked = typed === undefined && options.run.format === 'text' && isInteractive(io)
  const best = bestVariant(work.variants, check !== undefined)
  const number = isAsked ? await ask(candidates, { io, work, best }) : typed === 'best' ? best?.number : typed
  if (number === 'none') {
    await work.removeAll()
    await write(io.stderr, 'The copies were removed. The sessions remain.\n')
    return undefined
  }
  const variant = work.variants.find((each) => each.number === number)
  if (!variant) return undefined
  if (variant.sessionId === undefined || !variant.diff)
    throw new Failure(exitCodes.runFailed, `Variant ${variant.number} has no result to choose.`, {
      type: 'no-result',
      next: ['tapetree variants list'],
    })
  await work.release()
  const chosen = await chooseVariant(variant.sessionId, { io, store, conflicts })
  for (const each of work.variants) if (!chosen.remaining.includes(each.sessionId ?? '')) delete each.folder
  if (options.run.format === 'text') for (const line of choiceText(chosen)) await write(io.stderr, `${line}\n`)
  return chosen
}

/** A number, `none`, or undefined to decide later. */
async function ask(
  candidates: readonly VariantState[],
  { io, work, best }: { io: Io; work: Work; best: VariantState | undefined },
): Promise<number | 'none' | undefined> {
  if (candidates.length === 0) return undefined
  const numbers = candidates.map(({ number }) => number).join(', ')
  const hint = best ? ` Best: ${best.number}.` : ''
  for (;;) {
    const typed = await askLine(
      io,
      `Choose a variant (${numbers}), show a diff (d1), remove all (none), or decide later (Enter).${hint} `,
    ).catch(async (error: unknown) => {
      await write(io.stderr, '\n! The copies are kept. To see them: tapetree variants list\n')
      throw error
    })
    if (typed === '') {
      await write(io.stderr, 'The copies are kept. To choose one later: tapetree variants choose <variant>\n')
      return undefined
    }
    if (/^none$/i.test(typed)) return 'none'
    const [, shows, number] = /^(d\s*)?(\d+)$/i.exec(typed) ?? []
    const variant = candidates.find((each) => String(each.number) === number)
    if (!variant) await write(io.stderr, `There is no variant ${harmlessLine(typed)}.\n`)
    else if (shows === undefined) return variant.number
    else await write(io.stdout, await work.patch(variant))
  }
}

function chosenJson(chosen: ChosenVariant | undefined): object | null {
  if (!chosen) return null
  const { sessionId, folder, changed, merged, kept, skipped, remaining } = chosen
  return { session_id: sessionId, folder, changed, merged, kept, skipped, remaining }
}

const decideLater = ['tapetree variants list', 'tapetree variants choose <session>', 'tapetree variants remove --all']

function stoppedFailure(reason: StopReason, { variants }: Work): Failure {
  const kept = variants.filter(({ folder }) => folder !== undefined).length
  const why =
    kept === 0
      ? 'No copy is left.'
      : `${counted(kept, 'copy', 'copies')} with changes ${kept === 1 ? 'is' : 'are'} kept.`
  const next = kept === 0 ? [] : decideLater
  if (reason === 'cost')
    return new Failure(exitCodes.limitReached, 'The variants were stopped, because together they reached --max-cost.', {
      type: 'limit:cost',
      why,
      next,
    })
  return new Failure(exitCodes.interrupted, 'Interrupted.', { type: 'interrupted', why, next })
}

/** Undefined if a variant was chosen, or if one could be. */
function outcomeFailure(
  { choose: typed, check }: VariantsOptions,
  { work, chosen }: { work: Work; chosen: ChosenVariant | undefined },
): Failure | undefined {
  const hasCompleted = work.variants.some(({ outcome }) => outcome === 'completed')
  if (chosen || (typed === 'none' && hasCompleted)) return undefined
  if (bestVariant(work.variants, check !== undefined)) return undefined
  const message = !hasCompleted
    ? 'No variant completed.'
    : check === undefined
      ? 'No variant changed a file.'
      : 'No variant changed a file and passed the check.'
  return new Failure(exitCodes.runFailed, message, { type: 'no-variant', next: decideLater })
}
