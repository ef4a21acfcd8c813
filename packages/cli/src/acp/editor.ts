import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
} from '@agentclientprotocol/sdk/unstable'

/** The editor at the other end of the connection. */
export interface Editor {
  readonly features: EditorFeatures
  /** Resolves when the update is written, so that a slow editor slows the updates. */
  update(sessionId: string, update: SessionUpdate): Promise<void>
  /** Aborting the signal withdraws the request from the editor, and rejects. */
  requestPermission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse>
  elicit(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse>
}

/** What an editor can show beyond the protocol's minimum. */
export interface EditorFeatures {
  /** It draws the output of commands that the agent runs as a terminal (`_meta.terminal_output`). */
  terminals: boolean
  notices: boolean
  compaction: boolean
  /** It shows forms, so that questions can be answered in words. */
  forms: boolean
}
