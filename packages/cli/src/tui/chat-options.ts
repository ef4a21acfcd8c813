import type { Terminal } from '@earendil-works/pi-tui'
import type { OpenedSession, SessionSource } from '../session-source.ts'
import type { ThemeName } from './theme.ts'

export interface ChatOptions {
  source: SessionSource
  /**
   * The session to begin with; undefined: the picker is shown first. A promise is waited for with the screen standing, and what is typed
   * meanwhile is kept; where it rejects, so does the chat.
   */
  first: OpenedSession | Promise<OpenedSession> | undefined
  /** Sent as soon as the screen stands. */
  prompt?: string
  look: ChatLook
  /** Lines to show above the conversation, such as who owns the session or what is wrong in the settings. Harmless already. */
  notices?: readonly Notice[]
  /** Called once when the chat stands, with a way to tell what goes wrong beside the conversation while it runs, a sentence each. */
  remarks?: (tell: (text: string) => void) => void
  /** The file that keeps what was typed, one JSON string a line. */
  historyFile?: string
  /** The command of the user's editor, from `VISUAL` or `EDITOR`. */
  editor?: string
  /** Where the user works: for `@` paths, images and `!`. */
  cwd: string
  home: string
  env: Readonly<Record<string, string | undefined>>
  /** Aborted when the process is asked to end: the chat closes as if the user had quit. */
  signal?: AbortSignal
  /** Suspends the process, as Ctrl-Z does in other programs. Absent: there is no shell to return to. */
  suspend?: () => void
  /** The real one, unless a test says otherwise. */
  terminal?: Terminal
  now?: () => number
}

export interface Notice {
  text: string
  /** Absent: it stays true while the chat runs. */
  while?: () => boolean
}

export interface ChatLook {
  theme: ThemeName
  vim: boolean
  /** Nothing is redrawn: lines are only added. */
  screenReader: boolean
  /** False: the conversation stays in the scrollback of the terminal. */
  altScreen: boolean
  /** False: no colour codes at all. */
  colour: boolean
}

/** How it ended: the session that was shown last. */
export interface ChatEnd {
  sessionId: string | undefined
}
