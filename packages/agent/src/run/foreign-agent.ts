import type { Message, Session, ToolUse, Usage } from '@tapetree/session'
import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import type { Clock } from '@tapetree/session/util/wait'
import type { Access, GateCall, ToolOutput, Verdict } from '../tools/tool.ts'
import type { SteerPolicy } from './run-settings.ts'

/**
 * An agent that is not ours: it has its own loop, its own context and its own tools. It replaces the turns of a run. Queue, permissions,
 * recovery and the log stay the same.
 */
export interface ForeignAgent {
  /** Recorded as the model of its answers, with the provider `acp`. */
  readonly name: string
  /**
   * Works on the messages at the end of the path until it has nothing more to do. Throws a `ModelError` if it failed: `network` is retried
   * after a pause, a few times in a row until the agent has ended a turn. After an abort it throws the reason of the signal.
   */
  work(run: ForeignRun): Promise<void>
}

/** The provider and the wire format of answers that a foreign agent made. */
export const foreignApi = 'acp'

/** What a foreign agent does in a run. Methods that append resolve when the line is durable; call them one after the other. */
export interface ForeignRun {
  readonly runId: string
  readonly session: Session
  /** Absolute. */
  readonly cwd: string
  readonly clock: Clock
  readonly steerPolicy: SteerPolicy
  /** Aborted when the user stops the run, or the process ends. */
  readonly signal: AbortSignal
  /** The process ends, and another one resumes the run: nothing more may be written. */
  readonly isSuspended: boolean
  /** The last entry of the run. */
  readonly head: string | null
  /** Calls of this agent without a result. */
  readonly openCalls: readonly ToolUse[]
  /** The conversation so far, with the bytes of images. */
  messages(): Promise<Message[]>
  /** Whether the last message of the path is a whole answer of this run. */
  isSettled(): Promise<boolean>
  /** Ends what an earlier process, or an agent that died, has left open: calls whose outcome is unknown, and questions. */
  settle(): Promise<void>
  /** Counts a turn. Throws `RunStopped` if a limit leaves no room for it. */
  beginTurn(): void
  /** Adds text to the current answer. It is in the log when the answer ends. */
  say(kind: 'text' | 'reasoning', text: string): Promise<void>
  /** Ends the current answer with a call. Its result must follow before the turn ends. */
  call(call: ToolUse): Promise<void>
  /** Ends the current answer, if there is one. With a reason other than `pause`, the agent has ended its turn. */
  endAnswer(stopReason: string, usage?: Usage): Promise<void>
  /** Keeps the current answer beside the path, because it was cut off. */
  failAnswer(error: { kind: string; message: string }): Promise<void>
  /** The call has begun: from now on it may have taken effect. */
  startCall(call: ToolUse, access: readonly Access[]): Promise<void>
  /** The result of a call. Withdraws its questions. */
  answerCall(call: ToolUse, output: ToolOutput, access: readonly Access[]): Promise<void>
  /** More live output of a call, for observers. */
  showOutput(call: ToolUse, text: string): void
  append(draft: EntryDraft | RecordDraft): Promise<void>
  /** Asks the gate of the session. Aborting the signal withdraws the question. */
  admit(call: Omit<GateCall, 'runId'>, signal: AbortSignal): Promise<Verdict>
  /** The text of a file, if the gate allows it. Rejects with a sentence. */
  readFile(path: string, signal: AbortSignal): Promise<string>
  /** Writes a file with our tool, if the gate allows it. Rejects with a sentence. */
  writeFile(path: string, content: string, signal: AbortSignal): Promise<void>
  /** Starts a command with our tool, if the gate allows it. Rejects with a sentence. */
  startCommand(command: string, options: ForeignCommandOptions): Promise<ForeignCommand>
  /** Calls the listener for each new steer, and at once if one is waiting. */
  onSteer(listener: () => void): () => void
  /** The steer to deliver next, with the bytes of its images. It stays in the queue. */
  nextSteer(): Promise<ForeignSteer | undefined>
  /** Ends the current answer and delivers a steer that the agent has got. No call may be open. One that was changed meanwhile stays in the queue. */
  deliverSteer(steer: ForeignSteer): Promise<void>
  /** Delivers all waiting steers. Returns whether there were any. */
  deliverSteers(): Promise<boolean>
}

/** A message that waits for delivery. */
export interface ForeignSteer {
  id: string
  text: string
  message: Message
}

export interface ForeignCommandOptions {
  /** Absolute. */
  cwd: string
  /** Withdraws the question whether the command may start. */
  asking: AbortSignal
  /** Stops the command, unless the reason is `SessionSuspended`. */
  signal: AbortSignal
  onOutput: (text: string) => void
}

export interface ForeignCommand {
  /** Resolves when it has ended; the exit code is absent if a signal ended it. */
  done: Promise<{ exitCode?: number }>
}
