import { parseOsc11BackgroundColor, TuiAltScreen, TuiMainScreen, type Terminal, type TUI } from '@earendil-works/pi-tui'
import type { ChatEnd, ChatOptions } from '../chat-options.ts'
import { installKeybindings } from './key-actions.ts'
import { Completion } from '../input/completion.ts'
import { Composer } from '../input/composer.ts'
import { counted } from '../../text/amounts.ts'
import { DraftFile } from '../input/draft-file.ts'
import { dirname, join } from 'node:path'
import { Appearance } from './appearance.ts'
import { Attention } from './attention.ts'
import { assembleCore, machineCommands, type ChatCore } from '../chat/chat-core.ts'
import { ChatScreen } from './chat-screen.ts'
import { Dialogs } from './dialogs.ts'
import { Keys } from './keys.ts'
import { LoadedEntries } from '../chat/current-session.ts'
import { PanelOpeners } from './panel-openers.ts'
import { PanelPlace } from './panel-place.ts'
import { LatePane } from './late-pane.ts'
import type { ClickedPlace } from './mouse-selection.ts'
import type { TranscriptPane } from './transcript-pane.ts'
import { BlockedWrites } from '../chat/blocked-writes.ts'
import { JobList } from '../chat/job-list.ts'
import { Rewinding } from '../chat/rewinding.ts'
import { planLines } from '../views/plan-lines.ts'
import { Sender } from '../chat/sender.ts'
import { SessionLines } from './session-lines.ts'
import { SlashCommands, type Look } from '../chat/slash-commands.ts'
import { slashTable } from '../chat/slash-table.ts'
import { Ticker } from '../chat/activities.ts'
import type { ToolCallPart } from '@tapetree/session/view'
import { isThemeName, isTrueColor, themeNames, type ThemeName } from '../theme.ts'
import type { Remarks } from '../chat/remarks.ts'
import type { SessionActions } from '../chat/session-actions.ts'

/** The chat on a screen: draws it, runs until the user quits, and restores the terminal. */
export class ChatApp {
  readonly #options: ChatOptions
  readonly #parts: ChatParts
  #isRestored = false

  constructor(options: ChatOptions, terminal: Terminal) {
    installKeybindings()
    this.#options = options
    this.#parts = assembleChat(options, terminal)
  }

  async run(): Promise<ChatEnd> {
    const { life, draft } = this.#parts
    try {
      return await life.run({
        start: () => this.#start(),
        begin: () => this.#begin(),
        restore: () => this.restore(),
      })
    } finally {
      // Messages may have been acknowledged while the session closed.
      draft.flush()
    }
  }

  /** Restores the terminal and leaves the last answer on it. May be called at any time, and repeatedly. */
  restore(): void {
    const { attention, draft, drawing, lines, screen, tui } = this.#parts
    drawing.stop()
    lines.stop()
    draft.flush()
    if (this.#isRestored) return
    this.#isRestored = true
    attention.stop()
    screen.finish()
    if (tui instanceof TuiMainScreen) tui.renderNow()
    tui.stop()
  }

  /** Hands the terminal to the shell for a while. */
  pause(): void {
    if (this.#isRestored) return
    this.#parts.attention.stop()
    this.#parts.tui.stop({ preserveScreen: true })
  }

  /** Takes the terminal back. */
  resume(): void {
    if (this.#isRestored) return
    this.#parts.tui.start()
    this.#parts.attention.start()
    this.#parts.tui.requestRender(true)
  }

  #start(): void {
    const { attention, tui, screen } = this.#parts
    if (tui instanceof TuiAltScreen) tui.setLayoutRoot(screen)
    else tui.addChild(screen)
    tui.setFocus(screen)
    tui.start()
    attention.start()
    tui.renderNow()
    if (this.#options.look.detectsTheme) this.#detectTheme()
  }

  /**
   * Asks the terminal for its background, and uses the light theme on a light one. The answer may come late: over a slow line, or because
   * this process was loading. It counts until the user chooses a theme.
   */
  #detectTheme(): void {
    const { tui, appearance, setTheme } = this.#parts
    const stopListening = tui.addInputListener((data) => {
      if (!data.startsWith(backgroundAnswer)) return undefined
      stopListening()
      const { r, g, b } = parseOsc11BackgroundColor(data) ?? { r: 0, g: 0, b: 0 }
      if (!appearance.isChanged && 0.299 * r + 0.587 * g + 0.114 * b > middleGray) setTheme('light')
      return { consume: true }
    })
    tui.terminal.write(`${backgroundAnswer}?\u0007`)
  }

  #begin(): void {
    const { first, prompt, remarks: listen } = this.#options
    const { draft, history, composer, remarks, openers, sender } = this.#parts
    history.load()
    composer.remember(history.entries)
    const unsent = draft.take()
    if (unsent !== '' && composer.isEmpty) composer.text = unsent
    listen?.((text) => remarks.warn(text))
    if (first === undefined) remarks.watch(openers.sessions())
    if (prompt !== undefined) sender.send(prompt)
  }
}

/** How the question for the background begins, and the answer to it (OSC 11). */
const backgroundAnswer = '\u001b]11;'
const middleGray = 128

/** The parts that the chat itself uses. */
interface ChatParts extends ChatCore {
  lines: SessionLines
  appearance: Appearance
  setTheme: (name: ThemeName) => void
  draft: DraftFile
  tui: TUI
  attention: Attention
  drawing: Drawing
  screen: ChatScreen
  composer: Composer
  openers: PanelOpeners
  sender: Sender
}

/** Assembles a chat: creates its parts and connects them. */
function assembleChat(options: ChatOptions, terminal: Terminal): ChatParts {
  const { source, look, cwd, env } = options
  const attention = new Attention({ terminal, env, reportsFocus: look.altScreen, now: options.now ?? Date.now })
  const tui = look.altScreen ? new TuiAltScreen(terminal, true) : new TuiMainScreen(terminal, true)
  const drawing = new Drawing(tui, { showsTime: () => session.isBusy || !activities.isIdle || lines.isPausing })
  const { request: draw, requestAll: onRedraw } = drawing
  let hasSent = false
  let openedCount = 0
  const core = assembleCore(options, {
    onChange: ({ type }) => {
      const { handle } = session
      if (!handle) return
      if (type === 'opened') {
        dialogs.reset()
        openedCount++
      }
      pane.update(handle.sessionId, handle.transcript)
      composer.label = session.obstacle
      panels.follow()
      dialogs.sync()
      rewinding.sync()
      attention.update({
        folder: session.cwd ?? cwd,
        isBusy: session.isBusy,
        requests: handle.transcript.permissions.map(({ requestId }) => requestId),
      })
      // A search loads older messages while a panel is open.
      if (pane.scrolling?.isAtNewest && !panels.current) loaded.trim(handle)
      draw()
    },
    ui: () => ({
      ask: openers.ask,
      askSecret: openers.askSecret,
      suggest: (text) => {
        if (composer.isEmpty) composer.text = text
        draw()
      },
    }),
    onRemark: draw,
    onRemarkGone: draw,
    onActivity: draw,
  })
  const { now, session, remarks, activities, actions, enterKey } = core
  const panels = new PanelPlace()
  const loaded = new LoadedEntries()
  const appearance = new Appearance({ ...look, isTrueColor: isTrueColor(env) })
  const { theme } = appearance
  const onOlder = (): void => {
    const { handle } = session
    if (handle) remarks.watch(actions.attempt('Loading older messages', () => handle.loadOlder()))
  }
  const news = {
    taskNews: (about: string) => lines.taskNews(about),
    jobNews: (jobId: string) => lines.jobNews(jobId),
  }
  const shown = { theme, now, onChange: draw, ...news }
  const onProblem = (error: unknown): void => remarks.fail(error)
  const pane = new LatePane({ ...shown, onOlder, isScrolling: look.altScreen, onProblem })
  const { historyFile } = options
  const draft = new DraftFile({
    folder: historyFile === undefined ? undefined : join(dirname(historyFile), 'drafts'),
    cwd,
  })
  const offered = (): { name: string; description: string }[] => [
    ...slashTable.map(({ name, says }) => ({ name, description: says })),
    ...(session.handle?.state('commands') ?? []),
  ]
  const composer = new Composer({
    tui,
    theme,
    vim: look.vim,
    completion: new Completion({ files: (query) => source.files(query), commands: offered }),
    onChange: (text) => {
      session.present(text !== '')
      keepDraft()
    },
    attachImage: (pasted) => attachImage(pasted, core),
  })
  const keepDraft = (): void => {
    draft.keep([...sender.unacknowledged, composer.text].filter((text) => text !== '').join('\n'))
  }
  const onTheme = (): void => {
    pane.invalidate()
    onRedraw()
  }
  const openers = new PanelOpeners({
    ...core,
    source,
    panels,
    appearance,
    cwd,
    onTheme,
    scrolling: () => pane.scrolling,
    onChooseText: (text) => (composer.text = text),
    onCommand: (text) => sender.send(text),
    onShowEntry: (entryId) => pane.scrolling?.show(entryId),
    rewinding: () => rewinding,
    onChange: draw,
  })
  const rewinding = new Rewinding({ ...core, ask: openers.ask, composer })
  const chooseTheme = (): Promise<void> => openers.theme()
  const commands = new SlashCommands({
    ...core,
    terminal,
    chooser: openers,
    rewinding,
    blocked: new BlockedWrites({ ...core, ask: openers.ask }),
    jobs: new JobList({ ...core, source, ask: openers.ask }),
    machine: machineCommands(options, core, openers),
    send: (text) => sender.send(text),
    look: screenLook({ appearance, composer, pane, remarks, actions, chooseTheme, onTheme }),
  })
  const sender = new Sender({
    ...core,
    commands,
    composer,
    showsQueue: true,
    onSend: () => {
      hasSent = true
      pane.scrolling?.to('end')
    },
    onUnacknowledged: keepDraft,
  })
  composer.onSubmit = sender.send
  const dialogs = new Dialogs({
    panels,
    remarks,
    theme,
    now,
    handle: () => session.handle,
    home: options.home,
    localFolder: () => session.localFolder,
    subagentName: (sessionId) => lines.subagentName(sessionId),
    mayAnswer: () => session.takesMessages,
    onResume: () => remarks.watch(actions.resume()),
    onChange: draw,
  })
  const onEditor = (): Promise<void> => editOutside(options, { tui, composer, remarks })
  const onEditLast = (): Promise<void> => rewinding.undo()
  const onSuspend = (): void => {
    if (options.suspend) options.suspend()
    else remarks.warn('There is no shell to return to.')
  }
  const keys = new Keys({
    ...core,
    composer,
    panels,
    pane,
    dialogs,
    openers,
    sender,
    onEditLast,
    onEditor,
    onRedraw,
    onSuspend,
    onPasteImage: () => pasteImage(core, { composer, onChange: draw }),
  })
  const lines = new SessionLines({ session, source, appearance, now, onChange: draw })
  const screen = new ChatScreen({
    tui,
    appearance,
    pane,
    panels,
    composer,
    remarks,
    activities,
    opening: () => (hasSent || openedCount > 1 ? [] : trueNotices(options)),
    status: (width) => lines.status(width),
    plan: (width) => planLines(session.handle?.transcript.plan ?? [], { theme, width }),
    waiting: (width) => lines.waiting(width),
    hint: () =>
      hintFor({
        isBusy: session.isBusy,
        runsCommand: actions.runsCommand,
        enterSteers: enterKey.steers,
        isAtNewest: pane.scrolling?.isAtNewest ?? true,
        hasPostponed: dialogs.hasPostponed,
        isVim: composer.isVim,
      }),
    footer: (width) => lines.footer(width),
    sidebar: (size) => lines.sidebar({ ...size, work: pane.work() }),
    copy: (text) => copyToTerminal(tui, text),
    clickAt: (place) => subagentClick(place, { session, actions, pane, lines }),
    onChange: draw,
    onInput: (data) => keys.press(data),
  })
  const setTheme = (name: ThemeName): void => {
    appearance.change(name)
    onTheme()
  }
  return { ...core, lines, appearance, setTheme, draft, tui, attention, drawing, screen, composer, openers, sender }
}

/** Opens the session of the subagent whose line is there. */
function subagentClick(
  { area, row }: ClickedPlace,
  { session, actions, pane, lines }: Pick<ChatParts, 'session' | 'actions' | 'lines'> & { pane: TranscriptPane },
): (() => void) | undefined {
  if (area === 'side') {
    const child = lines.subagentBeside(row)
    return child === undefined ? undefined : () => void actions.open(child)
  }
  const { handle } = session
  const task = pane.scrolling?.text?.taskAt(row)
  const open = async (call: ToolCallPart): Promise<void> => {
    const child = await lines.subagentOf(call)
    if (child !== undefined && session.handle === handle) await actions.open(child)
  }
  return task && (() => void open(task))
}

/** Sends selected text to the clipboard of the terminal (OSC 52), and says so for a moment. */
function copyToTerminal(tui: TUI, text: string): void {
  if (!(tui instanceof TuiAltScreen)) return
  if (text.length > mostCopied) return tui.flash('Too much to copy. /share writes the session to a file.')
  tui.terminal.write(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`)
  tui.flash(`Copied ${counted(text.length, 'character')}`)
}

/** Terminals ignore what is much longer. */
const mostCopied = 500_000

function trueNotices({ notices = [] }: ChatOptions): string[] {
  return notices.filter((notice) => notice.while?.() ?? true).map(({ text }) => text)
}

async function attachImage(pasted: string, { images, remarks }: ChatCore): Promise<string | undefined> {
  try {
    return await images.attach(pasted)
  } catch (error) {
    remarks.fail(error)
    return undefined
  }
}

async function pasteImage(
  { images, remarks, activities }: ChatCore,
  { composer, onChange }: { composer: Composer; onChange: () => void },
): Promise<void> {
  const mark = await activities.track('Reading the clipboard', images.attachClipboard())
  if (mark === undefined) return remarks.warn('There is no image in the clipboard.')
  composer.insert(`${mark} `)
  onChange()
}

async function editOutside(
  { editor, cwd, env }: ChatOptions,
  { tui, composer, remarks }: Pick<ChatParts, 'tui' | 'composer' | 'remarks'>,
): Promise<void> {
  if (editor === undefined)
    return remarks.warn('No editor is set. Set VISUAL or EDITOR, for example: export EDITOR=nano')
  const { editComposer } = await import('../input/external-editor.ts')
  await editComposer({ tui, composer, command: editor, cwd, env })
}

interface HintSituation {
  isBusy: boolean
  /** A command typed here. */
  runsCommand: boolean
  enterSteers: boolean
  isAtNewest: boolean
  hasPostponed: boolean
  isVim: boolean
}

/** The most useful keys at this moment. */
function hintFor({ isBusy, runsCommand, enterSteers, isAtNewest, hasPostponed, isVim }: HintSituation): string {
  const keys = [
    ...(isAtNewest ? [] : ['End to the newest']),
    ...(hasPostponed ? ['Enter shows the question'] : []),
    ...(runsCommand && !isBusy ? ['Ctrl-C stops your command'] : []),
    ...(isBusy
      ? [
          enterSteers ? 'Enter steers' : 'Enter queues',
          'Alt-Enter steers',
          isVim ? 'Ctrl-C stops' : 'Esc stops',
          'Ctrl-Q queue',
        ]
      : ['Enter sends', 'Alt-Enter new line', '@ files', '! shell', 'Ctrl-K go to', '? help']),
  ]
  return keys.join(' · ')
}

/** When the screen is drawn: after changes, and each second while a time is shown. */
class Drawing {
  readonly #tui: TUI
  readonly #showsTime: () => boolean
  readonly #ticker = new Ticker(() => this.request())
  #isOver = false

  constructor(tui: TUI, { showsTime }: { showsTime: () => boolean }) {
    this.#tui = tui
    this.#showsTime = showsTime
  }

  /** Combines many changes into one frame. */
  readonly request = (): void => {
    if (this.#isOver) return
    this.#ticker.run(this.#showsTime())
    this.#tui.requestRender()
  }

  /** Redraws every line, even if it seems unchanged. */
  readonly requestAll = (): void => {
    if (!this.#isOver) this.#tui.requestRender(true)
  }

  stop(): void {
    this.#isOver = true
    this.#ticker.stop()
  }
}

interface ScreenLookOptions {
  appearance: Appearance
  composer: Pick<Composer, 'isVim' | 'setVim'>
  pane: Pick<TranscriptPane, 'toggleDetails'>
  remarks: Remarks
  actions: SessionActions
  chooseTheme: () => Promise<void>
  onTheme: () => void
}

function screenLook({ appearance, composer, pane, remarks, actions, chooseTheme, onTheme }: ScreenLookOptions): Look {
  return {
    async theme(name) {
      if (name === '') return chooseTheme()
      if (!isThemeName(name)) return remarks.warn(`There is no theme ${name}. Themes: ${themeNames.join(', ')}.`)
      appearance.change(name)
      onTheme()
      await actions.remember({ theme: name })
    },
    vim() {
      composer.setVim(!composer.isVim)
      const { isVim } = composer
      remarks.say(isVim ? 'Vim keys are on. Esc enters normal mode.' : 'Vim keys are off.', {
        while: () => composer.isVim === isVim,
      })
    },
    details: () => pane.toggleDetails(),
  }
}
