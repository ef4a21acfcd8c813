import { checkLine } from '../line/check-line.ts'
import { fromDisk, payloadOf, textOr } from '../line/codec.ts'
import { isObject } from '../util/json.ts'
import type { DiskLine } from '../line/line.ts'

/** A record in its disk form, with its seq. */
export interface PlacedRecord {
  payload: Record<string, unknown>
  seq: number
  timestamp: string
}

/** The start of a command of the user in its disk form, and the client command that it is the effect of. */
interface StartedCommand {
  payload: Record<string, unknown>
  cause: unknown
}

const recordTypes = new Set([
  'run_start',
  'run_end',
  'error',
  'attempt',
  'plan',
  'tool_start',
  'bash_start',
  'snapshot',
  'restore',
  'working_copy',
  'workspace',
  'workspace_files',
])

type SavedFacts = Omit<RecentFacts, 'running' | 'asked' | 'commands'> &
  Record<'running' | 'asked', string[]> & { commands: [string, StartedCommand][] }

/** The newest of each kind of record that a screen or the next run needs, so that it can start without reading the log. */
export class RecentFacts {
  run: PlacedRecord | null = null
  lastRun: PlacedRecord | null = null
  lastError: PlacedRecord | null = null
  plan: PlacedRecord | null = null
  /** The files as they were last recorded. */
  snapshot: PlacedRecord | null = null
  /** A restore of files that has started and not ended. */
  openRestore: PlacedRecord | null = null
  /** The copy of its folder in which the session works, or last worked. */
  workingCopy: PlacedRecord | null = null
  /** The folder of another machine in which its tools work. */
  workspace: PlacedRecord | null = null
  /** The files of that folder as they were last kept. */
  workspaceFiles: PlacedRecord | null = null
  /** Tool calls that started in the open run and have no result yet. */
  readonly running = new Set<string>()
  /** Tool calls that the open run has asked for and that have no result yet. */
  readonly asked = new Set<string>()

  /** Commands of the user that started and have no message yet, by the id of that message. */
  readonly commands = new Map<string, StartedCommand>()

  /** Ignores the other records. */
  take(line: DiskLine, seq: number): void {
    if (recordTypes.has(line.type) && checkLine(fromDisk(line, seq)).type !== line.type) return
    const placed = (): PlacedRecord => ({ payload: payloadOf(line), seq, timestamp: textOr(line.timestamp, '') })
    switch (line.type) {
      case 'run_start':
        this.run = placed()
        this.lastError = null
        return
      case 'run_end':
        this.run = null
        this.lastRun = placed()
        this.running.clear()
        this.asked.clear()
        return
      case 'error':
        this.lastError = placed()
        return
      case 'attempt': {
        const { error } = payloadOf(line)
        if (isObject(error)) this.lastError = { ...placed(), payload: error }
        return
      }
      case 'plan':
        this.plan = placed()
        return
      case 'snapshot':
        this.snapshot = placed()
        return
      case 'restore':
        this.openRestore = payloadOf(line)['phase'] === 'start' ? placed() : null
        return
      case 'working_copy':
        this.workingCopy = placed()
        return
      case 'workspace':
        this.workspace = placed()
        return
      case 'workspace_files':
        this.workspaceFiles = placed()
        return
      case 'tool_start':
        this.running.add(textOr(payloadOf(line)['call_id'], ''))
        return
      case 'bash_start': {
        const payload = payloadOf(line)
        this.commands.set(textOr(payload['message_id'], ''), { payload, cause: line['cause'] })
        return
      }
      case 'message':
        this.commands.delete(line.id)
        this.#takeMessage(payloadOf(line))
        return
      default:
        return
    }
  }

  toCheckpoint(): unknown {
    const { running, asked, commands, ...facts } = this
    return { ...facts, running: [...running], asked: [...asked], commands: [...commands] }
  }

  restore(saved: unknown): void {
    const { running, asked, commands, ...facts } = saved as SavedFacts
    Object.assign(this, facts)
    for (const [messageId, started] of commands) this.commands.set(messageId, started)
    for (const callId of running) this.running.add(callId)
    for (const callId of asked) this.asked.add(callId)
  }

  #takeMessage(message: Record<string, unknown>): void {
    if (message['role'] === 'assistant' && !isObject(message['error'])) this.lastError = null
    const content = Array.isArray(message['content']) ? (message['content'] as unknown[]) : []
    for (const block of content) {
      if (!isObject(block)) continue
      const { tool_result: result, tool_use: call } = block
      if (isObject(result)) this.#end(textOr(result['tool_use_id'], ''))
      if (!isObject(call)) continue
      const callId = textOr(call['id'], '')
      this.#end(callId)
      if (this.run) this.asked.add(callId)
    }
  }

  #end(callId: string): void {
    this.running.delete(callId)
    this.asked.delete(callId)
  }
}
