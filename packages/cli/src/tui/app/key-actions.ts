import { matchesKey, type KeyId } from '@earendil-works/pi-tui'

/** What a key does in the chat, wherever the hands are. All other keys belong to the panel that is open, or to the composer. */
export type KeyAction =
  | 'enter'
  | 'interrupt'
  | 'stop'
  | 'end'
  | 'steer'
  | 'queue'
  | 'tree'
  | 'sessions'
  | 'model'
  | 'details'
  | 'next_mode'
  | 'history'
  | 'editor'
  | 'find'
  | 'page_up'
  | 'page_down'
  | 'newest'
  | 'oldest'
  | 'redraw'
  | 'suspend'

export interface KeyRow {
  action: KeyAction
  keys: readonly KeyId[]
  /** As it is called in the help. */
  label: string
  says: string
}

export const keyTable: readonly KeyRow[] = [
  { action: 'enter', keys: ['enter'], label: 'Enter', says: 'send; while a run goes on: queue' },
  { action: 'interrupt', keys: ['ctrl+c'], label: 'Ctrl-C', says: 'stop the turn and keep everything; twice: quit' },
  { action: 'stop', keys: ['escape'], label: 'Esc', says: 'stop the turn, or close what is open' },
  { action: 'end', keys: ['ctrl+d'], label: 'Ctrl-D', says: 'quit, where nothing is typed' },
  { action: 'steer', keys: ['ctrl+enter', 'alt+enter'], label: 'Alt-Enter', says: 'while a run goes on: steer it now' },
  { action: 'queue', keys: ['ctrl+q'], label: 'Ctrl-Q', says: 'messages that wait' },
  { action: 'tree', keys: ['ctrl+t'], label: 'Ctrl-T', says: 'tree of the session' },
  { action: 'sessions', keys: ['ctrl+s'], label: 'Ctrl-S', says: 'other sessions' },
  { action: 'model', keys: ['ctrl+p'], label: 'Ctrl-P', says: 'choose the model' },
  { action: 'details', keys: ['ctrl+o'], label: 'Ctrl-O', says: 'show or fold reasoning and tool output' },
  { action: 'next_mode', keys: ['shift+tab'], label: 'Shift-Tab', says: 'next permission mode' },
  { action: 'history', keys: ['ctrl+r'], label: 'Ctrl-R', says: 'search what was typed before' },
  { action: 'editor', keys: ['ctrl+g'], label: 'Ctrl-G', says: 'write in your own editor' },
  { action: 'find', keys: ['ctrl+f'], label: 'Ctrl-F', says: 'find in the conversation' },
  { action: 'page_up', keys: ['pageUp'], label: 'PageUp', says: 'scroll up; the mouse wheel does too' },
  { action: 'page_down', keys: ['pageDown'], label: 'PageDown', says: 'scroll down' },
  { action: 'newest', keys: ['end', 'ctrl+end'], label: 'End', says: 'to the newest' },
  { action: 'oldest', keys: ['ctrl+home'], label: 'Ctrl-Home', says: 'to the beginning' },
  { action: 'redraw', keys: ['ctrl+l'], label: 'Ctrl-L', says: 'draw everything again' },
  { action: 'suspend', keys: ['ctrl+z'], label: 'Ctrl-Z', says: 'suspend; fg in the shell brings it back' },
]

function actionOf(data: string): KeyAction | undefined {
  return keyTable.find(({ keys }) => keys.some((key) => matchesKey(data, key)))?.action
}

/** What decides whether a key is one of the chat or of the composer. */
export interface KeySituation {
  isBusy: boolean
  isComposerEmpty: boolean
  /** The composer has its own use for Escape just now. */
  takesEscape: boolean
  isAtNewest: boolean
  /** Something is asked that the user has put off. */
  hasPostponed: boolean
  /** Whether the screen scrolls by itself. */
  canScroll: boolean
}

/** The action of a key here and now; undefined where it belongs to the composer. */
export function actionFor(data: string, situation: KeySituation): KeyAction | undefined {
  const action = actionOf(data)
  switch (action) {
    case 'enter':
      // The composer sends what stands in it. With nothing in it, Enter goes back to the question.
      return situation.hasPostponed && situation.isComposerEmpty ? action : undefined
    case 'stop':
      return situation.takesEscape ? undefined : action
    case 'end':
      return situation.isComposerEmpty ? action : undefined
    case 'steer':
      return situation.isBusy ? action : undefined
    case 'newest':
      return situation.canScroll && !situation.isAtNewest ? action : undefined
    case 'page_up':
    case 'page_down':
    case 'oldest':
    case 'find':
      return situation.canScroll ? action : undefined
    default:
      return action
  }
}
