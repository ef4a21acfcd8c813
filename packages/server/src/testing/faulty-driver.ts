import type { Command } from '@tapetree/client/protocol'
import type { Cause, Session } from '@tapetree/session'
import type { CommandRights, DriverEvent, SessionDriver, SlashCommand } from '../live/driver.ts'
import type { Fault } from './fault.ts'

/** A driver with one bug in it. */
export class FaultyDriver implements SessionDriver {
  readonly #inner: SessionDriver
  readonly #fault: Fault

  constructor(inner: SessionDriver, fault: Fault) {
    this.#inner = inner
    this.#fault = fault
    spoil(inner.session, fault)
  }

  get session(): Session {
    return this.#inner.session
  }

  get isBusy(): boolean {
    return this.#inner.isBusy
  }

  async perform(command: Command, cause: Cause, rights?: CommandRights): Promise<unknown> {
    switch (this.#fault) {
      case 'ack before durable':
        void this.#inner.perform(command, cause, rights).catch(() => undefined)
        return undefined
      case 'a permission resolved twice':
        if (command.op === 'permission.answer') return this.#answerAnyway(command.args.request_id, cause)
        break
      case 'cancel that hits the next run':
        if (command.op === 'cancel') return this.#inner.perform({ op: 'cancel', args: {} }, cause)
        break
      default:
    }
    return this.#inner.perform(command, cause, rights)
  }

  config(): Record<string, unknown> {
    return this.#inner.config()
  }

  slashCommands(): readonly SlashCommand[] {
    return this.#inner.slashCommands()
  }

  subscribe(listener: (event: DriverEvent) => void): () => void {
    return this.#inner.subscribe(listener)
  }

  canResume(): Promise<boolean> {
    return this.#inner.canResume()
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  async #answerAnyway(requestId: string, cause: Cause): Promise<unknown> {
    await this.session.append(
      { type: 'permission_result', permissionResult: { requestId, outcome: 'allowed', optionId: 'allow_once' } },
      { cause },
    )
    return { request_id: requestId }
  }
}

function spoil(session: Session, fault: Fault): void {
  if (fault === 'command ids not rebuilt after a restart') {
    const known = session.head.seq
    const effectOf = session.effectOf.bind(session)
    session.effectOf = (command) => {
      const seq = effectOf(command)
      return seq !== undefined && seq <= known ? undefined : seq
    }
  }
  if (fault === 'a submission dequeued before its message is appended') {
    const deliver = session.deliver.bind(session)
    session.deliver = async (id, options) => {
      const waiting = session.inbox.messages.find((message) => message.id === id)
      if (!waiting) return deliver(id, options)
      await session.changeInbox({ action: 'remove', id })
      const content = [{ type: 'text' as const, text: { content: waiting.message } }]
      return session.appendMessage('user', content, { ...options, with: { ...options?.with, submissionId: id } })
    }
  }
  if (fault === 'a line of a run after its run_end') {
    session.subscribe(({ line }) => {
      if (line.type !== 'run_end') return
      const { runId } = line.runEnd
      void session.append({ type: 'error', error: { message: 'one more thing', runId } }).catch(() => undefined)
    })
  }
}
