import type { History } from '../input/history.ts'
import { keyTable } from './key-actions.ts'
import type { OpenerContext, Panel, PanelListeners, PanelPlace } from './panel-place.ts'
import { listedFolder } from '../chat/current-session.ts'
import type { AskSecret } from '../chat/enter-key.ts'
import type { Question, Rewinding } from '../chat/rewinding.ts'
import type { Scrolling } from './transcript-pane.ts'
import type { Chooser } from '../chat/slash-commands.ts'
import { slashTable } from '../chat/slash-table.ts'

export interface PanelOpenersOptions extends Omit<OpenerContext, 'open' | 'close' | 'onGo' | 'folder'> {
  /** The working folder on this machine. */
  cwd: string
  rewinding: () => Rewinding
  panels: PanelPlace
  history: History
  /** The conversation, if our screen scrolls it. */
  scrolling: () => Scrolling | undefined
  onTheme: () => void
  onChooseText: (text: string) => void
  /** Runs a command as if the user had typed it. */
  onCommand: (text: string) => void
}

/** Opens panels on request. Each is loaded on first use. */
export class PanelOpeners implements Chooser {
  readonly #options: PanelOpenersOptions
  #asked = 0

  constructor(options: PanelOpenersOptions) {
    this.#options = options
  }

  readonly close = (): void => {
    this.#options.panels.choose(undefined)
    this.#options.onChange()
  }

  async help(): Promise<void> {
    const { HelpPanel } = await import('../panels/help-panel.ts')
    const { appearance, session } = this.#options
    const commands = session.handle?.state('commands') ?? []
    const own = slashTable.map((row) => ({
      name: `/${row.name}${'argument' in row ? ` ${row.argument}` : ''}`,
      says: row.says,
    }))
    const sections = [
      { title: 'Keys', rows: [...keyTable.map(({ label, says }) => ({ name: label, says })), newLine] },
      { title: 'Commands', rows: own },
      {
        title: 'Shell',
        rows: [
          { name: '!command', says: 'run it; the model sees the output' },
          { name: '!!command', says: 'run it; only you see the output' },
        ],
      },
      ...(commands.length > 0
        ? [
            {
              title: 'Of this session',
              rows: commands.map(({ name, description }) => ({ name: `/${name}`, says: description })),
            },
          ]
        : []),
    ]
    this.#open(new HelpPanel({ theme: appearance.theme, sections, onClose: this.close }))
  }

  async model(): Promise<void> {
    const { ModelPicker } = await import('../panels/pickers.ts')
    const { source, session, actions, appearance, onChange } = this.#options
    const chosen = session.handle?.state('config')?.model
    const panel = new ModelPicker({
      theme: appearance.theme,
      models: [],
      ...(chosen && { current: `${chosen.provider}/${chosen.modelId}` }),
      onChoose: ({ provider, modelId }) => {
        this.close()
        void actions.set({ model: { provider, modelId } })
      },
      onClose: this.close,
    })
    this.#open(panel)
    await actions.attempt('Loading models', async () => panel.update(await source.models()))
    onChange()
  }

  async thinking(): Promise<void> {
    const { ThinkingPicker } = await import('../panels/pickers.ts')
    const { source, session, actions, appearance } = this.#options
    const config = session.handle?.state('config')
    await actions.attempt('Loading models', async () => {
      const models = await source.models()
      const model = models.find(
        ({ provider, modelId }) => provider === config?.model?.provider && modelId === config.model.modelId,
      )
      const panel = new ThinkingPicker({
        theme: appearance.theme,
        levels: model?.thinkingLevels ?? [],
        ...(config?.thinkingLevel != null && { current: config.thinkingLevel }),
        onChoose: (level) => {
          this.close()
          void actions.setThinking(level)
        },
        onClose: this.close,
      })
      this.#open(panel)
    })
  }

  async mode(): Promise<void> {
    const { ModePicker } = await import('../panels/pickers.ts')
    const { session, actions, appearance } = this.#options
    const current = session.handle?.state('config')?.mode
    const panel = new ModePicker({
      theme: appearance.theme,
      ...(current != null && { current }),
      onChoose: (mode) => {
        this.close()
        void actions.setMode(mode)
      },
      onClose: this.close,
    })
    this.#open(panel)
  }

  async theme(): Promise<void> {
    const { ThemePicker } = await import('../panels/pickers.ts')
    const { appearance, onTheme } = this.#options
    let chosen = appearance.name
    const change = (name: typeof chosen): void => {
      appearance.change(name)
      onTheme()
    }
    const panel = new ThemePicker({
      theme: appearance.theme,
      current: chosen,
      onPreview: change,
      onChoose: (name) => {
        chosen = name
        this.close()
        void this.#options.actions.remember({ theme: name })
      },
      onClose: this.close,
    })
    this.#open(panel, { onClosed: () => change(chosen) })
  }

  async history(): Promise<void> {
    const { ChoicePanel } = await import('../panels/choice-panel.ts')
    const { history, appearance, onChooseText } = this.#options
    const entries = [...new Set(history.entries.toReversed())]
    const panel = new ChoicePanel<string>({
      theme: appearance.theme,
      title: 'Earlier prompts',
      hasSearch: true,
      choices: entries.map((entry) => ({ value: entry, label: entry })),
      onChoose: (entry) => {
        this.close()
        onChooseText(entry)
      },
      onClose: this.close,
    })
    this.#open(panel)
  }

  /** Undefined if the user closes the panel. */
  readonly ask = async <Value>({ title, intro, choices }: Question<Value>): Promise<Value | undefined> => {
    const { ChoicePanel } = await import('../panels/choice-panel.ts')
    const answer = Promise.withResolvers<Value | undefined>()
    const settle = (value: Value): void => {
      answer.resolve(value)
      this.close()
    }
    const panel = new ChoicePanel<Value>({
      theme: this.#options.appearance.theme,
      title,
      intro,
      choices,
      onChoose: settle,
      onClose: this.close,
    })
    this.#open(panel, { onClosed: () => answer.resolve(undefined) })
    return answer.promise
  }

  /** Undefined if the user closes the panel. */
  readonly askSecret: AskSecret = async ({ title, intro }) => {
    const { SecretPanel } = await import('../panels/secret-panel.ts')
    const answer = Promise.withResolvers<string | undefined>()
    const settle = (secret: string): void => {
      answer.resolve(secret)
      this.close()
    }
    const { theme } = this.#options.appearance
    const panel = new SecretPanel({ theme, title, intro, onSubmit: settle, onClose: this.close })
    this.#open(panel, { onClosed: () => answer.resolve(undefined) })
    return answer.promise
  }

  async find(): Promise<void> {
    const { FindPanel } = await import('../panels/find-panel.ts')
    const { appearance, session, onChange } = this.#options
    const scrolling = this.#options.scrolling()
    if (!scrolling) return
    const panel = new FindPanel({
      theme: appearance.theme,
      onFind: (words, options) => scrolling.find(words, options),
      loadOlder: async () => {
        if (!scrolling.hasOlder || !session.handle) return false
        await session.handle.loadOlder(olderEntries)
        return true
      },
      onChange,
      onClose: this.close,
    })
    const onClosed = (): void => {
      panel.close()
      scrolling.endFind()
    }
    this.#open(panel, { onClosed })
  }

  async palette(): Promise<void> {
    const { openPalette } = await import('./palette-opener.ts')
    const { onCommand, onChooseText } = this.#options
    await openPalette({ ...this.#context(), onCommand, onInsert: onChooseText })
  }

  async sessions(): Promise<void> {
    const { openSessionPicker } = await import('./session-opener.ts')
    await openSessionPicker(this.#context())
  }

  async tree(): Promise<void> {
    const asked = ++this.#asked
    const { openTreePanel } = await import('./tree-opener.ts')
    await openTreePanel({ ...this.#context(), isWanted: () => asked === this.#asked })
  }

  /** Discards a panel that is still loading. */
  cancel(): void {
    this.#asked++
  }

  async diff(): Promise<void> {
    const [{ sessionChanges }, { DiffPanel }] = await Promise.all([
      import('../chat/session-changes.ts'),
      import('../panels/diff-panel.ts'),
    ])
    const { source, session, actions, remarks, appearance, onChange } = this.#options
    const { handle } = session
    if (!handle) return remarks.warn('There is no session yet.')
    await actions.attempt('Comparing files', async () => {
      const { files, notes } = await sessionChanges({ handle, source })
      if (files.length === 0) return remarks.say('This session has not changed any file.')
      const title = 'Changed in this session'
      this.#open(new DiffPanel({ theme: appearance.theme, title, files, notes, onChange, onClose: this.close }))
    })
  }

  async queue(): Promise<void> {
    const { openQueuePanel } = await import('./queue-opener.ts')
    await openQueuePanel(this.#context())
  }

  #context(): OpenerContext {
    const onGo = (entryId: string): Promise<void> => this.#options.rewinding().goTo(entryId)
    const open: OpenerContext['open'] = (panel, listeners) => this.#open(panel, listeners)
    return { ...this.#options, folder: listedFolder(this.#options), onGo, open, close: this.close }
  }

  #open(panel: Panel, listeners?: PanelListeners): void {
    this.#options.panels.choose(panel, listeners)
    this.#options.onChange()
  }
}

/** How many entries a search loads at once. */
const olderEntries = 500

const newLine = { name: 'Shift-Enter, \\ Enter', says: 'new line; Alt-Enter too, if no run is active' }
