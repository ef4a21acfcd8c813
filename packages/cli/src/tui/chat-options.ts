import type { Terminal } from '@earendil-works/pi-tui'
import type { OpenedSession, SessionSource } from '../session-source.ts'
import type { AskSecret } from './chat/enter-key.ts'
import type { Ask } from './chat/rewinding.ts'
import type { ChatServices } from './chat-services.ts'
import type { ThemeName } from './theme.ts'

export interface ChatOptions {
  source: SessionSource
  /**
   * The first session; if undefined, shows the picker first. The screen is drawn while a promise is pending, and typed input is kept; if it
   * rejects, so does the chat. A function asks the user first; if it resolves to undefined, the chat ends.
   */
  first: OpenedSession | Promise<OpenedSession> | ((ui: SetupUi) => Promise<OpenedSession | undefined>) | undefined
  /** Loaded on first use. Absent if the sessions are on a server. */
  services?: () => Promise<ChatServices>
  /** Sent as soon as the screen is drawn. */
  prompt?: string
  look: ChatLook
  /** Lines above the conversation, such as the owner of the session or problems in the settings. Already harmless. */
  notices?: readonly Notice[]
  /** Called once when the chat is ready, with a function that reports problems outside the conversation, a sentence each. */
  remarks?: (tell: (text: string) => void) => void
  /** The history file, one JSON value per line. */
  historyFile?: string
  /** The command of the user's editor, from `VISUAL` or `EDITOR`. */
  editor?: string
  /** The user's working folder: for `@` paths, images and `!`. */
  cwd: string
  home: string
  env: Readonly<Record<string, string | undefined>>
  /** Aborted when the process should end: the chat closes as if the user had quit. */
  signal?: AbortSignal
  /** Suspends the process, as Ctrl-Z does in other programs. Absent if there is no shell to return to. */
  suspend?: () => void
  /** Defaults to the real one; tests may pass another. */
  terminal?: Terminal
  now?: () => number
}

/** What can be asked and shown before there is a session. */
export interface SetupUi {
  ask: Ask
  askSecret: AskSecret
  say: (text: string) => void
  /** Puts a message into the empty composer, to be sent or changed. */
  suggest: (text: string) => void
}

export interface Notice {
  text: string
  /** If absent, the notice stays while the chat runs. */
  while?: () => boolean
}

export interface ChatLook {
  theme: ThemeName
  /** Nobody has chosen the theme: it follows the background of the terminal. */
  detectsTheme?: boolean
  vim: boolean
  /** Never redraws: only adds lines. */
  screenReader: boolean
  /** False: keeps the conversation in the scrollback of the terminal. */
  altScreen: boolean
  /** False: no color codes at all. */
  color: boolean
}

/** How it ended: the session that was shown last. */
export interface ChatEnd {
  sessionId: string | undefined
}
