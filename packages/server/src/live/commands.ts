import { fileKindOf } from '@tapetree/agent/workspace'
import { checkCommand, type Ack, type Command, type Operation } from '@tapetree/client/protocol'
import { SessionError, type Cause, type Session } from '@tapetree/session'
import { Listeners } from '@tapetree/session/util/listeners'
import { emitWarning, RequestProblem, problemOf } from '../util/problem-error.ts'
import { localUser, type SessionDriver } from './driver.ts'
import { identityOf, isEffectOf, isSame, type CommandIdentity, type CommandSender } from './sent-command.ts'

/** A command from an endpoint, not validated yet. */
export interface CommandFrame {
  op: string
  args?: unknown
  ifHead?: number
  sender?: CommandSender
  /** The W3C trace that this command belongs to. */
  traceparent?: string
  /** The whole request, if this command is one part of it: the same id with another request is rejected. */
  request?: unknown
  /** Rejects if a limit forbids the command. Not called if the command took effect before. */
  checkLimits?: () => Promise<void>
}

/** A command for the node that owns the session. */
export interface RelayedCommand {
  id: string
  clientId: string
  /** The node of the client has checked its limits. */
  frame: Omit<CommandFrame, 'checkLimits'>
}

/** A command that was run or rejected, for metrics. */
export interface PerformedCommand {
  op: string
  ack: Ack
}

interface RememberedCommand {
  identity: CommandIdentity
  ack: Promise<Ack>
  traceparent: string | undefined
}

/** The session that the commands act on. */
interface Commanded {
  readonly driver: SessionDriver
  readonly session: Session
  readonly isWatched: boolean
  readonly isDraining: boolean
  /** Whether other nodes may own the session. */
  readonly hasNodes: boolean
  becomeWritable(): Promise<void>
  /** Opens it again as its log now says. */
  reopen(): Promise<void>
  /** Runs a command on the node that owns the session; undefined if none does. */
  relay(command: RelayedCommand): Promise<Ack | undefined>
}

/** Of several nodes that claim a session at the same time, one succeeds. */
const maxClaims = 5
const rememberedAcks = 10_000

/** Whether an operation begins work that a draining server would have to wait for. */
const beginsWork: Readonly<Record<Operation, boolean>> = {
  prompt: true,
  steer: true,
  follow_up: true,
  cancel: false,
  retry: true,
  resume: true,
  'permission.answer': false,
  set_model: false,
  set_thinking_level: false,
  set_config: false,
  set_workspace: false,
  compact: true,
  branch: false,
  rewind: false,
  blocked: false,
  label: false,
  rename: false,
  bash: true,
  'queue.add': true,
  'queue.edit': false,
  'queue.move': false,
  'queue.hold': false,
  'queue.release': true,
  'queue.remove': false,
  'queue.clear': false,
}

/** Runs the commands of a live session, each at most once. */
export class LiveCommands {
  readonly #live: Commanded
  readonly #acks = new Map<string, RememberedCommand>()
  readonly #listeners = new Listeners<PerformedCommand>(emitWarning)
  #lastGuarded: Promise<unknown> = Promise.resolve()
  #imageCheck: Promise<void> | undefined
  /** A command may take long without a run, such as a shell command. */
  #atWork = 0

  constructor(live: Commanded) {
    this.#live = live
  }

  get areDone(): boolean {
    return this.#atWork === 0
  }

  /**
   * Takes effect at most once, however often it is sent. Another command with the same id is rejected with
   * `key-reused`.
   */
  async perform(id: string, clientId: string, frame: CommandFrame): Promise<Ack> {
    const identity = identityOf({ op: frame.op, args: frame.request ?? frame.args }, frame.sender)
    const alias = aliasOf(id, identity)
    const aliasSeq = this.#live.session.effectOf(alias)
    if (aliasSeq !== undefined && (await isEffectOf(this.#live.session, aliasSeq, identity))) {
      return this.#duplicate({ cmd: alias, client: clientId }, id, frame)
    }
    const aliased = this.#acks.get(alias)
    if (aliased && isSame(aliased.identity, identity)) return { ...(await aliased.ack), id, dup: true }
    // Nothing may be awaited from here until the command is registered: of two concurrent ones, one runs.
    const earlier = this.#acks.get(id)
    if (earlier) return isSame(earlier.identity, identity) ? { ...(await earlier.ack), dup: true } : keyReused(id)
    const seq = this.#live.session.effectOf(id)
    if (seq !== undefined) {
      const isDuplicate = await isEffectOf(this.#live.session, seq, identity)
      return isDuplicate ? this.#duplicate({ cmd: id, client: clientId }, id, frame) : keyReused(id)
    }
    const { token, digest } = identity
    const cause: Cause = { cmd: id, client: clientId, ...(token !== localUser && { token }), digest }
    const ack = this.#inTurn(frame, () => this.#perform(cause, frame))
    this.#acks.set(id, { identity, ack, traceparent: frame.traceparent })
    const [oldest] = this.#acks.keys()
    if (this.#acks.size > rememberedAcks && oldest !== undefined) this.#acks.delete(oldest)
    const done = await ack
    this.#listeners.notify({ op: frame.op, ack: done })
    // A rejected command had no effect, so it may be retried.
    if (!done.ok) this.#acks.delete(id)
    return done
  }

  /** The trace of a recent command; undefined if it had none. */
  traceparentOf(commandId: string): string | undefined {
    return this.#acks.get(commandId)?.traceparent
  }

  /** Calls the listener once for every command, when it has its answer. */
  onCommand(listener: (done: PerformedCommand) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Commands with `ifHead` run one after another: of two that expect the same head, only one can succeed. */
  #inTurn({ ifHead }: { ifHead?: number }, work: () => Promise<Ack>): Promise<Ack> {
    if (ifHead === undefined) return work()
    const done = this.#lastGuarded.then(work)
    this.#lastGuarded = done.catch(() => undefined)
    return done
  }

  async #perform(cause: Cause, { op, args, ...frame }: CommandFrame): Promise<Ack> {
    const { cmd: id } = cause
    const { ifHead, sender, checkLimits } = frame
    this.#atWork++
    try {
      const checked = checkCommand(op, args)
      if (!checked.ok) throw new RequestProblem(422, 'invalid-command', checked.message)
      const { isWatched } = this.#live
      if (isWatched) {
        // Those of the client's token, which may be known only here.
        await checkLimits?.()
        const ack = await this.#relayOrClaim(cause, { op, args, ...frame })
        if (ack) return ack
        // The last lines of the previous owner may be the effect of this very command.
        if (this.#live.session.effectOf(id) !== undefined) return this.#effectOf(id, id)
      }
      if (this.#live.isDraining && beginsWork[checked.command.op]) throw draining()
      if (!isWatched) await checkLimits?.()
      const { seq: head } = this.#live.session.head
      if (ifHead !== undefined && ifHead !== head) {
        throw new RequestProblem(
          409,
          'head-moved',
          `The log has later lines; its head is now ${head}. Read it, then retry.`,
          { head },
        )
      }
      const images = this.#checkImages(checked.command)
      if (images) await images
      const result = await this.#live.driver.perform(checked.command, cause, { mayDrive: sender?.mayDrive ?? true })
      // Without a line, the session works there already.
      if (checked.command.op === 'set_workspace' && this.#live.session.effectOf(id) !== undefined) {
        await this.#live.reopen()
      }
      const seq = this.#live.session.effectOf(id)
      return { id, ok: true, ...(seq !== undefined && { seq }), ...(result !== undefined && { result }) }
    } catch (error) {
      return { id, ok: false, error: problemOf(error) }
    } finally {
      this.#atWork--
    }
  }

  /**
   * The answer to a command that took effect before. If a shell command has no outcome yet, the process that owns the
   * session is asked. If that process has died, this one takes over, and states the outcome.
   */
  async #duplicate(cause: Cause, id: string, frame: CommandFrame): Promise<Ack> {
    const isOpen = this.#live.session.openCommands.some(({ cause: by }) => by?.cmd === cause.cmd)
    if (isOpen && this.#live.isWatched) {
      // Its owner may be a program that takes no commands of others.
      const ack = await this.#relayOrClaim(cause, frame).catch(() => undefined)
      if (ack) return { ...ack, id, dup: true }
    }
    return this.#effectOf(cause.cmd, id)
  }

  #effectOf(command: string, id: string): Ack {
    const seq = this.#live.session.effectOf(command)
    return { id, ok: true, dup: true, ...(seq !== undefined && { seq }) }
  }

  /** The answer of the node that owns the session. Undefined if this node owns it now. */
  async #relayOrClaim(
    { cmd: id, client = '' }: Cause,
    { checkLimits, ...frame }: CommandFrame,
  ): Promise<Ack | undefined> {
    for (let attempt = 1; ; attempt++) {
      const ack = await this.#live.relay({ id, clientId: client, frame })
      if (ack) return ack
      try {
        await this.#live.becomeWritable()
        return undefined
      } catch (error) {
        // Another node may have claimed it first.
        if (!this.#live.hasNodes || attempt === maxClaims) throw error
      }
    }
  }

  /**
   * Rejects if a command has an unknown image, before it has an effect. Later commands wait, to keep the order.
   * Undefined if there is nothing to wait for: then the command runs in the same step.
   */
  #checkImages({ args }: Command): Promise<void> | undefined {
    const ids = 'image_ids' in args ? (args.image_ids ?? []) : []
    if (ids.length === 0) return this.#imageCheck
    const checked = (this.#imageCheck ?? Promise.resolve()).then(() => requireImages(this.#live.session, ids))
    const settled = checked
      .catch(() => undefined)
      .then(() => {
        if (this.#imageCheck === settled) this.#imageCheck = undefined
      })
    this.#imageCheck = settled
    return checked
  }
}

/** Rejects work that would begin while the server waits for its runs to finish. */
export function draining(): RequestProblem {
  const detail = 'The server is draining: it finishes its runs and restarts. Try again later.'
  return new RequestProblem(503, 'draining', detail, { retry_after_ms: 5000 })
}

/** REST prefixes keys with the token; sockets do not. A command that comes by both is still one command. */
function aliasOf(id: string, { token }: CommandIdentity): string {
  const prefix = `${token}:`
  return id.startsWith(prefix) ? id.slice(prefix.length) : `${prefix}${id}`
}

async function requireImages(session: Session, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const bytes = await session.getBlob(id).catch(unlessMissing)
    if (bytes && fileKindOf(bytes).type === 'image') continue
    throw new RequestProblem(422, 'unknown-image', `The session has no image ${id}. Store it first.`, { image_id: id })
  }
}

function unlessMissing(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'blob-missing') return undefined
  throw error
}

function keyReused(id: string): Ack {
  const detail = 'This id or idempotency key was used before for another command. Use a new one.'
  return { id, ok: false, error: problemOf(new RequestProblem(422, 'key-reused', detail)) }
}
