import type { Choice } from '@tapetree/client'
import type { ThemeName } from './theme.ts'

/**
 * What the chat needs of the machine that its sessions are on: settings, keys, programs and files. A chat with a session on a server has none
 * of this.
 */
export interface ChatServices {
  /** The rules in force for a session, and rules proposed from past approvals in its project. */
  permissions(sessionId: string): Promise<PermissionOverview>
  /** Allows what a proposal says, in this project, from the next start of a session. */
  acceptProposal(proposal: ProposedRule): Promise<void>
  /** Connects to the MCP servers in the settings. The caller closes them. */
  servers(): Promise<ServerReview>
  context(sessionId: string): Promise<ContextOverview>
  /** What all sessions of the user have used in the last days. */
  usage(days: number): Promise<UsageRow[]>
  /** Writes a session to a new file in the working folder, without secrets. */
  share(sessionId: string, format: ShareFormat): Promise<SharedFile>
  providers(): Promise<KeyProvider[]>
  /** Undefined if the provider accepts the key. */
  checkKey(provider: string, key: string): Promise<KeyProblem | undefined>
  /** Returns a sentence that says where the key is. */
  storeKey(provider: string, key: string): Promise<string>
  /** Keeps choices for new sessions: in this project, or wherever nothing else is chosen. Null forgets one. */
  remember(choices: RememberedChoices, where: RememberedPlace): Promise<void>
  /** What new sessions in this project start with. */
  remembered(): Promise<RememberedSetting[]>
  /** Closes a session of this process, so that it is opened again with changed settings. */
  release(sessionId: string): Promise<void>
}

/** The choices that are remembered, as in the settings. */
export interface RememberedChoices {
  /** `provider/id` */
  model?: string | null
  thinkingLevel?: NonNullable<Choice['thinkingLevel']> | null
  mode?: NonNullable<Choice['mode']> | null
  theme?: ThemeName | null
}

export type RememberedName = keyof RememberedChoices
export type RememberedPlace = 'project' | 'everywhere'

export interface RememberedSetting {
  name: RememberedName
  /** Undefined if nothing is chosen and there is no default. */
  value: string | undefined
  /** The file and line, the variable, or `default`. */
  from: string
  /** Whether it was chosen for this project alone. */
  isOfProject: boolean
}

export interface PermissionOverview {
  rules: readonly ListedRule[]
  proposals: readonly ProposedRule[]
}

/** All texts here may contain anything: the screen makes them harmless. */
export interface ListedRule {
  effect: 'allow' | 'ask' | 'deny'
  text: string
  /** The file and line, or who allowed it when. */
  from: string
}

export interface ProposedRule {
  /** Identifies it for `acceptProposal`. */
  id: string
  /** What it would allow. */
  text: string
  approvals: number
  sessions: number
  /** ISO 8601. */
  lastApproved: string
}

export interface ServerReview extends AsyncDisposable {
  servers: readonly ReviewedServer[]
  /** Accepts a changed server as shown. False if it has changed again since. */
  accept(server: ReviewedServer): Promise<boolean>
}

export interface ReviewedServer {
  name: string
  state: 'ready' | 'changed' | 'failed' | 'signing_in' | 'starting' | 'closed'
  /** What it is about, in a sentence; may be empty. */
  says: string
  tools: readonly { name: string; description: string; isNew: boolean }[]
  /** Identifies the version that the user sees. */
  sha256?: string
}

export interface ContextOverview {
  /** The tokens of the context. */
  tokens: number
  /** What takes them, the largest first. */
  parts: readonly { name: string; tokens: number }[]
  compaction?: ContextCompaction
}

/** The newest summary in the context. */
export interface ContextCompaction {
  /** The entry before it, to which an undo goes; null is the beginning. */
  beforeId: string | null
  tokensBefore: number
  /** What it replaced, one line each, oldest first. */
  dropped: readonly string[]
  /** Messages after it, which an undo leaves on their own branch. */
  messagesAfter: number
}

export interface UsageRow {
  model: string
  calls: number
  tokens: number
  /** In US dollars. */
  cost: number
}

export const shareFormats = ['html', 'markdown', 'bundle'] as const
export type ShareFormat = (typeof shareFormats)[number]

export interface SharedFile {
  path: string
  bytes: number
  /** How many secrets were removed. */
  redacted: number
}

/** Why a key is not known to be right. */
export interface KeyProblem {
  message: string
  /** False if the provider could not be asked. */
  isRefused: boolean
}

export interface KeyProvider {
  id: string
  name: string
  hasKey: boolean
}
