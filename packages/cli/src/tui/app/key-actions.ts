import { matchesKey, KeybindingsManager, setKeybindings, TUI_KEYBINDINGS, type KeyId } from '@earendil-works/pi-tui'

/** What a key does in the chat, wherever the focus is. All other keys go to the open panel or to the composer. */
export type KeyAction =
  | 'enter'
  | 'interrupt'
  | 'stop'
  | 'end'
  | 'steer'
  | 'queue'
  | 'edit_queued'
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
  | 'help'
  | 'palette'
  | 'paste_image'

export interface KeyRow {
  action: KeyAction
  keys: readonly KeyId[]
  /** As named in the help. */
  label: string
  says: string
}

export const keyTable: readonly KeyRow[] = [
  { action: 'enter', keys: ['enter'], label: 'Enter', says: 'send; during a run: queue' },
  { action: 'interrupt', keys: ['ctrl+c'], label: 'Ctrl-C', says: 'stop the turn and keep everything; twice: quit' },
  {
    action: 'stop',
    keys: ['escape'],
    label: 'Esc',
    says: 'stop the turn, or close the open panel; twice: edit your last message',
  },
  { action: 'end', keys: ['ctrl+d'], label: 'Ctrl-D', says: 'quit, if the prompt is empty' },
  { action: 'steer', keys: ['ctrl+enter', 'alt+enter'], label: 'Alt-Enter', says: 'during a run: steer it now' },
  { action: 'queue', keys: ['ctrl+q'], label: 'Ctrl-Q', says: 'queued messages' },
  {
    action: 'edit_queued',
    keys: ['up'],
    label: 'Up',
    says: 'edit the last queued message; otherwise: earlier prompts',
  },
  { action: 'tree', keys: ['ctrl+t'], label: 'Ctrl-T', says: 'session tree; a click on a subagent opens its session' },
  { action: 'sessions', keys: ['ctrl+s'], label: 'Ctrl-S', says: 'other sessions' },
  { action: 'model', keys: ['ctrl+p'], label: 'Ctrl-P', says: 'choose the model' },
  { action: 'details', keys: ['ctrl+o'], label: 'Ctrl-O', says: 'show or fold reasoning and tool output' },
  { action: 'next_mode', keys: ['shift+tab'], label: 'Shift-Tab', says: 'next permission mode' },
  { action: 'history', keys: ['ctrl+r'], label: 'Ctrl-R', says: 'search earlier prompts' },
  { action: 'editor', keys: ['ctrl+g'], label: 'Ctrl-G', says: 'write in your own editor' },
  {
    action: 'paste_image',
    keys: ['ctrl+v', 'alt+v'],
    label: 'Ctrl-V',
    says: 'insert the image in the clipboard; also Alt-V',
  },
  { action: 'find', keys: ['ctrl+f'], label: 'Ctrl-F', says: 'find in the conversation' },
  { action: 'page_up', keys: ['pageUp'], label: 'PageUp', says: 'scroll up; the mouse wheel does too' },
  { action: 'page_down', keys: ['pageDown'], label: 'PageDown', says: 'scroll down' },
  { action: 'newest', keys: ['end', 'ctrl+end'], label: 'End', says: 'scroll to the newest message' },
  { action: 'oldest', keys: ['ctrl+home'], label: 'Ctrl-Home', says: 'scroll to the beginning' },
  { action: 'redraw', keys: ['ctrl+l'], label: 'Ctrl-L', says: 'redraw the screen' },
  {
    action: 'palette',
    keys: ['ctrl+k'],
    label: 'Ctrl-K',
    says: 'go to a command, file, session or model, if the prompt is empty',
  },
  { action: 'help', keys: ['?'], label: '?', says: 'this sheet, if the prompt is empty' },
  { action: 'suspend', keys: ['ctrl+z'], label: 'Ctrl-Z', says: 'suspend; fg in the shell resumes' },
]

function actionOf(data: string): KeyAction | undefined {
  return keyTable.find(({ keys }) => keys.some((key) => matchesKey(data, key)))?.action
}

/** What decides whether a key belongs to the chat or to the composer. */
export interface KeySituation {
  isBusy: boolean
  isComposerEmpty: boolean
  /** A message waits in the queue. */
  hasQueued: boolean
  /** The composer uses Escape itself now. */
  takesEscape: boolean
  isAtNewest: boolean
  /** The user has postponed a pending request. */
  hasPostponed: boolean
  /** Whether our screen scrolls instead of the terminal. */
  canScroll: boolean
}

/** The action of a key in this state; undefined if the key belongs to the composer. */
export function actionFor(data: string, situation: KeySituation): KeyAction | undefined {
  const action = actionOf(data)
  switch (action) {
    case 'enter':
      // The composer sends its text. If it is empty, Enter reopens the request.
      return situation.hasPostponed && situation.isComposerEmpty ? action : undefined
    case 'stop':
      return situation.takesEscape ? undefined : action
    case 'end':
    case 'help':
    case 'palette':
      return situation.isComposerEmpty ? action : undefined
    case 'edit_queued':
      return situation.isComposerEmpty && situation.hasQueued ? action : undefined
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

/** Removes the scroll and find keys of the library, because the screen has its own: each key has one meaning. */
export function installKeybindings(): void {
  const none: [] = []
  setKeybindings(
    new KeybindingsManager(TUI_KEYBINDINGS, {
      'tui.input.newLine': ['shift+enter', 'alt+enter', 'ctrl+j'],
      'tui.editor.cursorRight': ['right'],
      'tui.editor.pageUp': none,
      'tui.editor.pageDown': none,
      'tui.altScreen.pageUp': none,
      'tui.altScreen.pageDown': none,
      'tui.altScreen.previousPrompt': none,
      'tui.altScreen.nextPrompt': none,
      'tui.altScreen.search': none,
      'tui.altScreen.top': none,
      'tui.altScreen.bottom': none,
    }),
  )
}
