import type { LineBase } from './entry.ts'
import type { Content, MessageError, Usage } from './message.ts'

/** Facts about running. They are no part of the tree: a record has no parent. */
export type SessionRecord =
  | WriterRecord
  | LeafRecord
  | SubmissionRecord
  | RunStartRecord
  | RunEndRecord
  | AttemptRecord
  | ToolStartRecord
  | PermissionRequestRecord
  | PermissionResultRecord
  | PermissionModeRecord
  | PlanRecord
  | FileReadRecord
  | FileWriteRecord
  | UsageRecord
  | ErrorRecord
  | DamageRecord
  | SessionEndRecord
  | UnknownRecord

/** Who writes from here on. Each writer's term is one higher than the one before it. */
export interface WriterRecord extends LineBase {
  type: 'writer'
  writer: { term: number; host: string; process: string; format: number }
}

/** An explicit move of the leaf, so that going back in time survives a restart. */
export interface LeafRecord extends LineBase {
  type: 'leaf'
  leaf: { targetId: string | null }
}

export type Delivery = 'steer' | 'follow-up'

/** One change to the messages that wait. Delivery is not among them: the delivered message itself is that fact. */
export interface SubmissionRecord extends LineBase {
  type: 'submission'
  submission: SubmissionChange
}

export type SubmissionChange =
  | {
      action: 'add'
      id: string
      delivery: Delivery
      message: string
      imageIds: string[]
      queuedAt: string
      clientId?: string
      /** Not delivered before it is released. */
      held?: true
    }
  | { action: 'edit'; id: string; message?: string; imageIds?: string[]; delivery?: Delivery }
  | { action: 'move'; id: string; beforeId: string | null }
  | { action: 'hold'; id?: string; reason?: string }
  | { action: 'release'; id?: string }
  | { action: 'remove'; id: string }
  /** All of them, or those of one delivery. */
  | { action: 'clear'; delivery?: Delivery }

export interface RunStartRecord extends LineBase {
  type: 'run_start'
  runStart: {
    runId: string
    leafId: string | null
    submissionId?: string
    /** What hosts it, such as `server`: it alone takes the run up again without being asked. */
    owner?: string
    /** The run that goes on here, after its process died. */
    resumes?: string
    /** How often it was resumed before without adding anything to the path. */
    fruitless?: number
    /** What it had used before. */
    spent?: Record<string, number>
  }
}

export type RunOutcome = 'completed' | 'failed' | 'aborted' | 'abandoned'

export interface RunEndRecord extends LineBase {
  type: 'run_end'
  runEnd: { runId: string; outcome: RunOutcome; reason?: string; durationMs?: number }
}

/** A model call that failed or was cut off, with what it had said. It lies beside the path. */
export interface AttemptRecord extends LineBase {
  type: 'attempt'
  attempt: { runId: string; item: string; error?: MessageError; content: Content[] }
}

export interface ToolStartRecord extends LineBase {
  type: 'tool_start'
  toolStart: {
    runId: string
    callId: string
    name: string
    entryId?: string
    host?: string
    bootId?: string
    spool?: string
    deadline?: string
    /** What the tool was given, where that is not what the model asked for. */
    input?: Record<string, unknown>
    /** The session of a subagent that does the work. */
    childSession?: string
  }
}

export interface PermissionOption {
  optionId: string
  label: string
  /** `answer` answers a question; the others decide on a call. */
  kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always' | 'answer'
}

export interface PermissionRequestRecord extends LineBase {
  type: 'permission_request'
  permissionRequest: {
    requestId: string
    runId?: string
    callId?: string
    tool: string
    title: string
    input?: Record<string, unknown>
    options: PermissionOption[]
  }
}

export interface PermissionResultRecord extends LineBase {
  type: 'permission_result'
  permissionResult: {
    requestId: string
    outcome: 'allowed' | 'rejected' | 'cancelled'
    optionId?: string
    /** What the user said in their own words. */
    text?: string
    clientId?: string
    /** A rule that stays in force for the session. */
    grant?: Record<string, unknown>
  }
}

/** The permission mode from here on. The newest one counts. */
interface PermissionModeRecord extends LineBase {
  type: 'permission_mode'
  permissionMode: { mode: string }
}

export interface PlanRecord extends LineBase {
  type: 'plan'
  plan: { items: { text: string; status: 'pending' | 'in_progress' | 'completed' }[] }
}

export interface FileReadRecord extends LineBase {
  type: 'file_read'
  fileRead: { path: string; size: number; runId?: string; callId?: string }
}

export interface FileWriteRecord extends LineBase {
  type: 'file_write'
  fileWrite: {
    path: string
    size: number
    sha256Before?: string
    sha256After?: string
    runId?: string
    callId?: string
  }
}

/** Only for calls that made no message, so that cost is the sum of both. */
export interface UsageRecord extends LineBase {
  type: 'usage'
  usage: { purpose: string; provider?: string; model?: string; tokens: Usage }
}

export interface ErrorRecord extends LineBase {
  type: 'error'
  error: { message: string; kind?: string; runId?: string }
}

/** Damage that has been seen and reported, so that it is not reported as new each time. */
export interface DamageRecord extends LineBase {
  type: 'damage'
  damage: { throughSeq: number; lostLines: number; places: { at: number; size: number; reason: string }[] }
}

export interface SessionEndRecord extends LineBase {
  type: 'session_end'
  sessionEnd: { reason: string }
}

export interface UnknownRecord extends LineBase {
  type: 'unknown_record'
  unknownRecord: { type: string; line: Record<string, unknown> }
}
