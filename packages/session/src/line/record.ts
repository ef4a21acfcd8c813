import type { LineBase } from './entry.ts'
import type { Content, MessageError, Usage } from './message.ts'

/** Facts about running. Records are not part of the tree: they have no parent. */
export type SessionRecord =
  | WriterRecord
  | LeafRecord
  | SubmissionRecord
  | RunStartRecord
  | RunEndRecord
  | AttemptRecord
  | ToolStartRecord
  | BashStartRecord
  | BlockedRecord
  | PermissionRequestRecord
  | PermissionResultRecord
  | PermissionModeRecord
  | PlanRecord
  | FileReadRecord
  | FileWriteRecord
  | SnapshotRecord
  | RestoreRecord
  | CheckRecord
  | WorkingCopyRecord
  | WorkspaceRecord
  | WorkspaceFilesRecord
  | UsageRecord
  | ErrorRecord
  | DamageRecord
  | SessionEndRecord
  | UnknownRecord

/** Names the writer of the lines that follow. Each writer's term is one higher than the previous one. */
export interface WriterRecord extends LineBase {
  type: 'writer'
  writer: { term: number; host: string; process: string; format: number }
}

/** An explicit move of the leaf, so that branching survives a restart. */
export interface LeafRecord extends LineBase {
  type: 'leaf'
  leaf: {
    targetId: string | null
    /** It went back in the conversation, or took back such a move. Only a move that was not taken back can be redone. */
    rewind?: 'undo' | 'redo'
    /** The restore of the files that belongs to it. */
    restoreId?: string
  }
}

export type Delivery = 'steer' | 'follow-up'

/** One change to the queued messages. Delivery is not one of them: the delivered message itself records it. */
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
      /** Not delivered until it is released. */
      held?: true
    }
  | { action: 'edit'; id: string; message?: string; imageIds?: string[]; delivery?: Delivery }
  | { action: 'move'; id: string; beforeId: string | null }
  | { action: 'hold'; id?: string; reason?: string }
  | { action: 'release'; id?: string }
  | { action: 'remove'; id: string }
  /** All messages, or only those with this delivery. */
  | { action: 'clear'; delivery?: Delivery }

export interface RunStartRecord extends LineBase {
  type: 'run_start'
  runStart: {
    runId: string
    leafId: string | null
    submissionId?: string
    /** The host of the run, such as `server`. Only this host resumes the run automatically. */
    owner?: string
    /** The interrupted run that this one resumes. */
    resumes?: string
    /** How many earlier resumes added nothing to the path. */
    fruitless?: number
    /** Usage before the run was resumed. */
    spent?: Record<string, number>
  }
}

export type RunOutcome = 'completed' | 'failed' | 'aborted' | 'abandoned'

export interface RunEndRecord extends LineBase {
  type: 'run_end'
  runEnd: { runId: string; outcome: RunOutcome; reason?: string; durationMs?: number }
}

/** A model call that failed or was cut off, with its partial output. Not part of the path. */
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
    /** The input that the tool received, if it differs from what the model sent. */
    input?: Record<string, unknown>
    /** The session of the subagent that does the work. */
    childSession?: string
    /** The sandbox in which the command runs. Absent: it runs outside of one. */
    sandbox?: {
      /** The program that makes the sandbox, such as `bubblewrap`. */
      backend: string
      /** The folders in which it may write. Empty: it only reads. */
      writable: string[]
      /**
       * The hosts that rules allowed when it started, such as `*.example.org`, and registries as far as they were known. The user may have
       * allowed more while it ran.
       */
      hosts: string[]
      /** How it sees the home folder: `read-only` with private cache folders, or as an `overlay`. Keys are hidden in both. */
      home: string
    }
  }
}

/** A command of the user is about to run. It has ended when the log has the message with its id. */
export interface BashStartRecord extends LineBase {
  type: 'bash_start'
  bashStart: {
    messageId: string
    command: string
    /** As in its message. */
    excludeFromContext?: boolean
    host?: string
    bootId?: string
    spool?: string
  }
}

/** Something that a sandbox did not let a command do. A later record about the same thing replaces an earlier one. */
export interface BlockedRecord extends LineBase {
  type: 'blocked'
  blocked: {
    /** Empty if a hook did it. */
    callId: string
    kind: 'write' | 'network' | 'socket' | 'hidden'
    /** A path or a host; empty if the output of the command does not name it. */
    what: string
    /** How often it was tried, or how often the output of the command reports it. */
    count: number
    /** The id of what was written. It was moved out of the working folder, and the user may apply it. */
    kept?: string
    /** What the user did with it. */
    outcome?: 'applied' | 'discarded'
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
    /** The user's own text. */
    text?: string
    clientId?: string
    /** A rule that applies for the rest of the session. */
    grant?: Record<string, unknown>
  }
}

/** The permission mode from here on; the newest record counts. */
export interface PermissionModeRecord extends LineBase {
  type: 'permission_mode'
  permissionMode: {
    mode: string
    /** Why it is not the mode that was asked for. */
    reason?: string
  }
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

/** The files of the workspace at one moment. The files themselves are in the workspace's own store, beside the log. */
export interface SnapshotRecord extends LineBase {
  type: 'snapshot'
  snapshot: {
    /** At the start of a run, before or after a call, or before files are put back. */
    when: 'start' | 'before' | 'after' | 'restore'
    tree: string
    /** Absent in the first snapshot of a workspace. */
    previous?: string
    /** Who made the changes since the previous snapshot: the agent's call, someone else, or maybe a background job. */
    by: 'agent' | 'outside' | 'job'
    runId?: string
    callId?: string
    /** The entry at which the files were like this. */
    entryId?: string
    added: number
    changed: number
    removed: number
    /** The first files that are not part of the snapshot, and why. */
    leftOut?: { path: string; reason: string }[]
    leftOutCount?: number
    /** What was checked out in the user's repository. */
    head?: string
    branch?: string
    durationMs: number
  }
}

/** Files were put back. The start is durable before the first file changes. */
export interface RestoreRecord extends LineBase {
  type: 'restore'
  restore: {
    restoreId: string
    phase: 'start' | 'end'
    /** The entry whose files were wanted; absent if an earlier restore was undone. */
    targetId?: string | null
    /** The restore that this one undoes. */
    undoes?: string
    /** The leaf to which the conversation moves with the files; absent if it stays. A `leaf` line follows before the end. */
    leafId?: string | null
    /** The tree before, and the one that was wanted. */
    from: string
    to: string
    /** Numbers of files: put to their target, left to others, decided by the user, changed by someone in the meantime. */
    changed?: number
    kept?: number
    conflicts?: number
    skipped?: number
  }
}

/** The result of a command that judges the files, such as the tests of a variant. */
export interface CheckRecord extends LineBase {
  type: 'check'
  check: {
    command: string
    exitCode: number
    durationMs: number
    /** The files that it judged. */
    tree?: string
    /** The files when it had ended, if it changed any. */
    treeAfter?: string
    entryId?: string
  }
}

/** The session works in a copy of its folder, or no longer does. The newest record counts. */
export interface WorkingCopyRecord extends LineBase {
  type: 'working_copy'
  workingCopy: {
    /** The session's folder inside of the copy. */
    folder: string
    /** The top folder of the copy. */
    root: string
    /** The folder that was copied. */
    copyOf: string
    /** The files that were copied. */
    tree: string
    /** The copies that were made for the same prompt. */
    variants?: { id: string; number: number; count: number }
    /** Set when the copy is given up: its files went to the folder that was copied, or nowhere. */
    outcome?: 'chosen' | 'discarded'
    /** The files of the copy in the end. */
    result?: string
  }
}

/** The tools of the session work in a folder of another machine from now on. The newest record counts. */
export interface WorkspaceRecord extends LineBase {
  type: 'workspace'
  workspace: {
    /** As the tool host calls it. */
    name: string
    hostId: string
    /** Shown to people. */
    hostName: string
    /** Absolute, on the host. */
    folder: string
    platform: string
  }
}

/** The files of a workspace of another machine at one moment, kept with the session: they can be recreated elsewhere. */
export interface WorkspaceFilesRecord extends LineBase {
  type: 'workspace_files'
  workspaceFiles: {
    /** Where the files were. */
    hostId: string
    name: string
    /** The id of a git tree. */
    tree: string
    /** Blobs: the git packs that have everything in the tree, together. */
    packs: { sha256: string; size: number }[]
    /** The first files that are not part of it, and why. Ignored files are never part of it. */
    leftOut?: { path: string; reason: string }[]
    leftOutCount?: number
    /** What was checked out in the repository. */
    head?: string
    branch?: string
  }
}

/** Only for model calls that made no message, so that the total cost is the sum of both. */
export interface UsageRecord extends LineBase {
  type: 'usage'
  usage: { purpose: string; provider?: string; model?: string; tokens: Usage }
}

export interface ErrorRecord extends LineBase {
  type: 'error'
  error: { message: string; kind?: string; runId?: string }
}

/** Damage that was acknowledged, so that it is reported as new only once. */
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

/** Every record type. A placeholder stands for a line that cannot be read; it is never appended. */
export const recordTypes = {
  writer: 'record',
  leaf: 'record',
  submission: 'record',
  run_start: 'record',
  run_end: 'record',
  attempt: 'record',
  tool_start: 'record',
  bash_start: 'record',
  blocked: 'record',
  permission_request: 'record',
  permission_result: 'record',
  permission_mode: 'record',
  plan: 'record',
  file_read: 'record',
  file_write: 'record',
  snapshot: 'record',
  restore: 'record',
  check: 'record',
  working_copy: 'record',
  workspace: 'record',
  workspace_files: 'record',
  usage: 'record',
  error: 'record',
  damage: 'record',
  session_end: 'record',
  unknown_record: 'placeholder',
} as const satisfies Record<SessionRecord['type'], 'record' | 'placeholder'>
