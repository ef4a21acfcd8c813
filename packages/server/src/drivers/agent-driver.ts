import type { AgentEvent, AgentSession, CodingAgent } from '@tapetree/agent'
import { KeptWriteError, type BlockedWrites, type KeptFile } from '@tapetree/agent/sandbox'
import {
  HostUnavailable,
  recreatedNotice,
  recreateFiles,
  RemoteWorkspace,
  type WorkspaceReference,
} from '@tapetree/agent/tool-host'
import { RestoreProblem, SnapshotsOff, type RewindOutcome } from '@tapetree/agent/workspace'
import type { Arguments, Command, WireBlockedWrites, WireStateValues } from '@tapetree/client/protocol'
import { SessionError, type Cause, type Session, type WaitingMessage } from '@tapetree/session'
import { fromDisk, type Delivery, type SubmissionChange, type DiskLine } from '@tapetree/session/format'
import { Listeners } from '@tapetree/session/util/listeners'
import { cutWhole } from '../live/in-flight.ts'
import { findWorkspace, type WorkspaceSource } from '../tool-hosts/tool-hosts.ts'
import { emitWarning, RequestProblem } from '../util/problem-error.ts'
import type { CommandRights, DriverEvent, SessionDriver, SlashCommand } from '../live/driver.ts'

export interface AgentDriverOptions {
  agent: AgentSession
  slashCommands?: () => readonly SlashCommand[]
  /** Calls the listener when the slash commands change. */
  onChange?: (listener: () => void) => () => void
  languageServers?: CodingAgent['languageServers']
  /** The tool hosts that the session may use. */
  workspaces?: WorkspaceSource
  /** Resources of the agent to close with it, such as its MCP servers. */
  close?: () => Promise<void>
}

interface Submission {
  message: string
  imageIds: string[]
  delivery: Delivery
}

/** Drives our own agent with commands. */
export class AgentDriver implements SessionDriver {
  readonly #agent: AgentSession
  readonly #options: AgentDriverOptions
  readonly #listeners = new Listeners<DriverEvent>(emitWarning)
  readonly #stop: () => void

  constructor(options: AgentDriverOptions) {
    this.#agent = options.agent
    this.#options = options
    const { agent } = options
    const stops = [
      agent.subscribe((event) => this.#take(event)),
      agent.remote?.subscribe(() => this.#tell({ type: 'config_changed' })),
      options.onChange?.(() => this.#tell({ type: 'config_changed' })),
      options.languageServers?.subscribe(() => this.#tell({ type: 'config_changed' })),
    ]
    this.#stop = () => stops.forEach((stop) => stop?.())
  }

  get session(): Session {
    return this.#agent.session
  }

  get isBusy(): boolean {
    return this.#agent.state().isBusy
  }

  get runsCommands(): boolean {
    return this.#agent.runsCommands
  }

  get toolProblem(): string | undefined {
    return this.#agent.remote?.problem
  }

  config(): Record<string, unknown> {
    const { model, thinkingLevel, mode, missingModel } = this.#agent.state()
    const { openRestore, permissionModeReason } = this.session
    return {
      model: { provider: model.provider, model_id: model.modelId },
      thinking_level: thinkingLevel,
      mode,
      ...(permissionModeReason !== undefined && { mode_reason: permissionModeReason }),
      ...(missingModel && {
        missing_model: { provider: missingModel.provider, model_id: missingModel.modelId, reason: missingModel.reason },
      }),
      ...(openRestore && { open_restore: openRestore.restoreId }),
      ...this.#workspace(),
    }
  }

  #workspace(): { workspace?: WireStateValues['config']['workspace'] } {
    const { remote } = this.#agent
    if (!remote) return {}
    const { reference, problem } = remote
    const { name, hostName: host, folder } = reference
    return { workspace: { name, host, folder, ...(problem !== undefined && { problem }) } }
  }

  languageServers(): WireStateValues['language_servers'] {
    const { languageServers } = this.#options
    return (languageServers?.states ?? []).map(({ problem, retryAt, ...server }) => ({
      ...server,
      ...(problem !== undefined && { problem: cutWhole(problem, maxProblem) }),
      ...(retryAt !== undefined && { retry_at: retryAt === null ? null : new Date(retryAt).toISOString() }),
    }))
  }

  slashCommands(): readonly SlashCommand[] {
    return this.#options.slashCommands?.() ?? []
  }

  subscribe(listener: (event: DriverEvent) => void): () => void {
    return this.#listeners.add(listener)
  }

  async canResume(): Promise<boolean> {
    return (await this.#agent.planResume()) !== undefined
  }

  async perform({ op, args }: Command, cause: Cause, rights: CommandRights = { mayDrive: true }): Promise<unknown> {
    const agent = this.#agent
    switch (op) {
      case 'prompt':
        return this.#prompt(args, args.when_busy ?? 'queue', cause)
      case 'steer':
        return this.#prompt(args, 'steer', cause)
      case 'follow_up':
        return rights.mayDrive ? this.#prompt(args, 'queue', cause) : this.#leaveMessage(args, cause)
      case 'cancel':
        return this.#cancel(args)
      case 'retry':
        return { run_id: (await agent.retry(cause)).id }
      case 'resume': {
        const run = await agent.resume({ byPerson: args.by_person ?? true, cause })
        return { run_id: run?.id ?? null }
      }
      case 'permission.answer':
        return this.#answer(args, cause)
      case 'set_model': {
        const { provider, id } = await agent.setModel(args.provider, args.model_id, cause).catch(unusable)
        this.#tell({ type: 'config_changed' })
        return { provider, model_id: id }
      }
      case 'set_thinking_level':
        await agent.setThinkingLevel(args.level, cause)
        return this.#tell({ type: 'config_changed' })
      case 'set_config':
        await agent.setMode(args.mode, cause)
        return this.#tell({ type: 'config_changed' })
      case 'set_workspace':
        return this.#setWorkspace(args, cause)
      case 'compact':
        return { outcome: (await agent.compact(args.instructions, cause).catch(unlessStopped)).type }
      case 'branch': {
        const { entry_id: entryId, summarise: summarize = false, instructions } = args
        const options = { summarize, cause, ...(instructions !== undefined && { instructions }) }
        await agent.navigate(entryId, options).catch(unlessStopped)
        return { leaf_id: this.session.leafId }
      }
      case 'rewind':
        return this.#rewind(args, cause)
      case 'blocked':
        return this.#blocked(args, cause)
      case 'label':
        return agent.setLabel(args.entry_id, args.label, cause)
      case 'rename':
        return agent.setName(args.name, cause)
      case 'bash': {
        const { command, exclude_from_context: excludeFromContext = false } = args
        const ended = await agent.executeBash(command, { excludeFromContext, cause }).catch(unlessSuspended)
        // Otherwise the next process waits for it, and its outcome comes with the log.
        return ended && { exit_code: ended.exitCode ?? null }
      }
      default:
        return this.#changeQueue({ op, args } as Command, cause, rights)
    }
  }

  /**
   * Takes effect when the session is opened again. A run that waits for a host which is away does not have to be stopped.
   * Nothing happens if the session uses that place already.
   */
  async #setWorkspace({ host, workspace, recreate }: Arguments<'set_workspace'>, cause: Cause): Promise<unknown> {
    const found = findWorkspace(this.#options.workspaces, { host, workspace })
    const result = { host: found.hostName, workspace: found.name, folder: found.folder }
    const { workspace: current } = this.session
    if (!recreate && current && isSamePlace(current, found)) return result
    if (this.#isAtWork) throw new SessionError('session-busy', 'The session is running. Cancel the run first.')
    const notice = recreate ? await this.#recreate(found) : undefined
    if (this.#isAtWork) throw runBegan(found)
    await this.session.append({ type: 'workspace', workspace: found }, { cause })
    // An open run takes it after the results of its calls.
    if (notice !== undefined && this.session.openRun) await this.session.submit(notice, { delivery: 'steer' })
    else if (notice !== undefined) await this.session.appendMessage('custom', notice)
    return result
  }

  /** What waits for a host that is away is not at work. */
  get #isAtWork(): boolean {
    return (this.isBusy || this.runsCommands) && this.toolProblem === undefined
  }

  /** Writes the files that were kept with the session into another folder. Returns what the model has to know. */
  async #recreate(place: WorkspaceReference): Promise<string> {
    const channel = this.#options.workspaces?.channel(place.hostId)
    if (!channel) throw new RequestProblem(404, 'tool-host-not-found', 'There are no tool hosts.')
    const remote = new RemoteWorkspace(place, channel)
    try {
      return recreatedNotice(this.session, await recreateFiles(this.session, remote), remote)
    } catch (error) {
      if (!(error instanceof HostUnavailable)) throw error
      throw new RequestProblem(409, 'files-not-recreated', error.message)
    } finally {
      remote.close()
    }
  }

  async close(): Promise<void> {
    this.#stop()
    await this.#agent.close()
    await this.#options.close?.()
  }

  async suspend(): Promise<void> {
    this.#stop()
    await this.#agent.suspend()
    await this.#options.close?.()
  }

  async #prompt(
    { text, image_ids: imageIds = [] }: Arguments<'steer'>,
    whenBusy: 'queue' | 'steer' | 'reject',
    cause: Cause,
  ): Promise<unknown> {
    const outcome = await this.#agent.prompt(text, { whenBusy, cause, imageIds })
    switch (outcome.type) {
      case 'started':
        return { outcome: 'started', run_id: outcome.runId }
      case 'steered':
      case 'queued':
        return { outcome: outcome.type, run_id: outcome.runId, message_id: outcome.message.id }
      case 'handled':
        return { outcome: 'handled', say: outcome.say ?? null }
      default:
        outcome satisfies never
        return undefined
    }
  }

  /** A follow-up from a caller without the role `drive`: delivered as typed, and starts nothing. */
  async #leaveMessage({ text, image_ids: imageIds = [] }: Arguments<'follow_up'>, cause: Cause): Promise<unknown> {
    const { id } = await this.#submit({ message: text, imageIds, delivery: 'follow-up', mayDrive: false }, cause)
    return { outcome: 'queued', run_id: this.session.openRun?.runId ?? null, message_id: id }
  }

  /** Without the role `drive`, a message that no run can take is held until a caller with that role releases it. */
  async #submit(
    { message, imageIds, delivery, mayDrive }: Submission & CommandRights,
    cause: Cause,
  ): Promise<WaitingMessage> {
    if (message.trim() === '' && imageIds.length === 0) throw emptyMessage()
    const { client: clientId } = cause
    const held = !mayDrive && !this.isBusy
    const options = { delivery, imageIds, held, cause, ...(clientId !== undefined && { clientId }) }
    const added = await this.session.submit(message, options)
    if (mayDrive) this.#agent.wake()
    // The run ended while the message was being written.
    else if (!held && !this.isBusy) await this.session.changeInbox({ action: 'hold', id: added.id }).catch(unlessGone)
    return added
  }

  async #rewind(args: Arguments<'rewind'>, cause: Cause): Promise<unknown> {
    const { entry_id: entryId, what, conflicts, choices = [], dry_run: isDryRun = false, interrupted } = args
    try {
      if (interrupted) {
        const ended = await this.#agent.resumeRewind(interrupted, cause)
        this.#tell({ type: 'config_changed' })
        return rewoundOnWire(ended)
      }
      const done = await this.#agent.rewind({
        ...(entryId !== undefined && { entryId }),
        ...(what && { what }),
        ...(conflicts && { conflicts }),
        choices: Object.fromEntries(choices.map(({ path, choice }) => [path, choice])),
        isDryRun,
        cause,
      })
      return rewoundOnWire(done)
    } catch (error) {
      if (error instanceof RestoreProblem) throw new RequestProblem(409, error.code, error.message)
      if (error instanceof SnapshotsOff) throw new RequestProblem(409, 'not-recorded', error.message)
      throw error
    }
  }

  async #blocked({ apply, discard }: Arguments<'blocked'>, cause: Cause): Promise<unknown> {
    try {
      if (apply !== undefined) await this.#agent.applyBlocked(apply, cause)
      if (discard !== undefined) await this.#agent.discardBlocked(discard, cause)
    } catch (error) {
      if (!(error instanceof KeptWriteError)) throw error
      throw new RequestProblem(error.code === 'write-not-found' ? 404 : 409, error.code, error.message)
    }
    return blockedOnWire(await this.#agent.blockedWrites())
  }

  async #cancel({ run_id: wanted }: Arguments<'cancel'>): Promise<unknown> {
    const current = this.session.openRun?.runId
    if (wanted !== undefined && wanted !== current) {
      throw new RequestProblem(409, 'run-not-current', `Run ${wanted} is not the current run.`, {
        run_id: current ?? null,
      })
    }
    // A caller that names a run cancels only that run.
    const hasStopped = wanted === undefined && (await this.#agent.stopCommands())
    if (this.isBusy) await this.#agent.abort()
    // Its process died, and it will not be resumed.
    else if (!hasStopped) await this.#agent.abandon()
    return { run_id: current ?? null }
  }

  async #answer(args: Arguments<'permission.answer'>, cause: Cause): Promise<unknown> {
    const { request_id: requestId, option_id: optionId, text, outcome = 'allowed' } = args
    const pending = this.session.pendingPermissions.find((request) => request.requestId === requestId)
    if (pending && optionId !== undefined && !pending.options.some((option) => option.optionId === optionId)) {
      throw new RequestProblem(422, 'unknown-option', `Request ${requestId} has no option ${JSON.stringify(optionId)}.`)
    }
    const answered = await this.#agent.answer(
      {
        requestId,
        outcome,
        ...(optionId !== undefined && { optionId }),
        ...(text !== undefined && { text }),
        ...(cause.client !== undefined && { clientId: cause.client }),
      },
      cause,
    )
    if (answered.type === 'taken') return { request_id: requestId }
    const first = await findAnswer(this.session, requestId)
    if (!first) throw new RequestProblem(404, 'request-not-found', `Request ${requestId} does not exist.`)
    throw new RequestProblem(409, 'already-resolved', `Request ${requestId} was already answered.`, first)
  }

  async #changeQueue(command: Command, cause: Cause, { mayDrive }: CommandRights): Promise<unknown> {
    if (command.op === 'queue.add') {
      const { message, image_ids: imageIds = [], delivery = 'follow-up' } = command.args
      const { id, queuedAt } = await this.#submit({ message, imageIds, delivery, mayDrive }, cause)
      return { id, message, queued_at: queuedAt }
    }
    if (command.op === 'queue.edit' && command.args.message?.trim() === '') throw emptyMessage()
    const change = submissionChange(command)
    if (!change) throw new RequestProblem(422, 'invalid-command', `The operation ${command.op} does not exist.`)
    await this.session.changeInbox(change, cause)
    if (mayDrive && (change.action === 'release' || change.action === 'edit')) this.#agent.wake()
    return undefined
  }

  #take(event: AgentEvent): void {
    if (event.type === 'line' || event.type === 'session_switched') return
    this.#tell(event)
  }

  #tell(event: DriverEvent): void {
    this.#listeners.notify(event)
  }
}

/** The length of the reason why a language server has failed. */
const maxProblem = 300

/** Its calls would lose their host. */
function runBegan({ folder, hostName }: WorkspaceReference): SessionError {
  return new SessionError(
    'session-busy',
    `A run began meanwhile, so the session stays where it is. Its files are in ${folder} on ${hostName} already: empty that folder before you try again.`,
  )
}

function isSamePlace(left: WorkspaceReference, right: WorkspaceReference): boolean {
  return left.hostId === right.hostId && left.name === right.name && left.folder === right.folder
}

function rewoundOnWire({ leafId, text, files }: RewindOutcome): unknown {
  return {
    leaf_id: leafId,
    ...(text !== undefined && { text }),
    ...(files && {
      files: {
        ...(files.problem !== undefined && { problem: files.problem }),
        changes: files.changes.map(({ canMerge, ...file }) => ({ ...file, ...(canMerge && { can_merge: canMerge }) })),
        skipped: files.skipped,
        kept_copies: files.keptCopies,
      },
    }),
  }
}

function blockedOnWire({ writes, home }: BlockedWrites): WireBlockedWrites {
  return {
    writes: writes.map(({ callId, files, fileCount, isOccupied, ...write }) => ({
      ...write,
      ...(callId !== undefined && { call_id: callId }),
      files: files.map(fileOnWire),
      file_count: fileCount,
      is_occupied: isOccupied,
    })),
    ...(home && { home: { folder: home.folder, files: home.files.map(fileOnWire), file_count: home.fileCount } }),
  }
}

function fileOnWire({ sizeBytes, isCut, ...file }: KeptFile): WireBlockedWrites['writes'][number]['files'][number] {
  return { ...file, size_bytes: sizeBytes, ...(isCut && { is_cut: isCut }) }
}

function submissionChange(command: Command): SubmissionChange | undefined {
  switch (command.op) {
    case 'queue.edit': {
      const { id, message, delivery, image_ids: imageIds } = command.args
      return {
        action: 'edit',
        id,
        ...(message !== undefined && { message }),
        ...(delivery !== undefined && { delivery }),
        ...(imageIds !== undefined && { imageIds }),
      }
    }
    case 'queue.move':
      return { action: 'move', id: command.args.id, beforeId: command.args.before_id }
    case 'queue.hold': {
      const { id, reason } = command.args
      return { action: 'hold', ...(id !== undefined && { id }), ...(reason !== undefined && { reason }) }
    }
    case 'queue.release':
      return { action: 'release', ...(command.args.id !== undefined && { id: command.args.id }) }
    case 'queue.remove':
      return { action: 'remove', id: command.args.id }
    case 'queue.clear':
      return {
        action: 'clear',
        ...(command.args.delivery !== undefined && { delivery: command.args.delivery }),
      }
    default:
      return undefined
  }
}

function unlessGone(error: unknown): void {
  if (!(error instanceof SessionError && error.code === 'message-not-found')) throw error
}

/** Rejected before it is queued, because a delivery cannot reject a message. */
function emptyMessage(): RequestProblem {
  return new RequestProblem(422, 'empty-prompt', 'The message is empty. Send text or an image.')
}

const stops = ['AbortError', 'OwnerLeft', 'SessionSuspended']

/** The summary was cancelled, or the session closed, while it was being written. */
function unlessStopped(error: unknown): never {
  if (error instanceof Error && stops.includes(error.name)) {
    throw new RequestProblem(409, 'cancelled', 'The summary was cancelled before it was finished.')
  }
  throw error
}

function unlessSuspended(error: unknown): undefined {
  if (error instanceof Error && error.name === 'SessionSuspended') return
  throw error
}

/** The client chose a model that cannot be opened; the message says what is missing. */
function unusable(error: unknown): never {
  throw new RequestProblem(422, 'model-not-usable', error instanceof Error ? error.message : String(error))
}

/** The first answer to a request, as sent to a client. */
interface FirstAnswer extends Record<string, unknown> {
  outcome: string
  option_id: string | null
  client: string | null
  seq: number
}

/** The answer that counts, read from the log so that it survives a restart. Undefined if there is none. */
async function findAnswer(session: Session, requestId: string): Promise<FirstAnswer | undefined> {
  for await (const stored of session.lines()) {
    // Avoids parsing most lines.
    if (stored.type !== 'line' || !stored.text.includes('permission_result')) continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (line.type !== 'permission_result' || line.permissionResult.requestId !== requestId) continue
    const { outcome, optionId, clientId } = line.permissionResult
    return { outcome, option_id: optionId ?? null, client: clientId ?? null, seq: stored.seq }
  }
  return undefined
}
