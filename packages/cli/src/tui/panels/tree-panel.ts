import { matchesKey } from '@earendil-works/pi-tui'
import type { NavigateOptions } from '@tapetree/client'
import type { Theme, Style } from '../theme.ts'
import { ListWindow, listRow } from './parts/list.ts'
import { FramedPanel, type FrameContent, type Room } from './parts/panel-frame.ts'
import { TextField, typedText } from './parts/text-field.ts'
import { TreeRows, type EntryRow, type TreeData, type TreeRow, type TreeFilter } from './tree-index.ts'
import { describeEntry } from '../../text/describe-entry.ts'
import { fitText } from '../../text/display-width.ts'
import { harmlessLine } from '../../text/harmless.ts'

interface TreePanelOptions {
  theme: Theme
  tree: TreeData
  /** The session continues from there; the abandoned branch may be summarized. */
  onGo: (entryId: string, options: NavigateOptions) => void
  /** An empty label removes it. */
  onLabel: (entryId: string, label: string) => void
  onFork: (entryId: string) => void
  /** Compares an entry with the current one. */
  onCompare: (entryId: string) => void
  /** Opens a subagent. */
  onOpenSession: (sessionId: string) => void
  onClose: () => void
}

type Typing = { type: 'search' | 'label' | 'summary'; row: EntryRow | undefined; field: TextField }

const filters: readonly TreeFilter[] = ['conversation', 'yours', 'labeled', 'all']
const filterNames: Record<TreeFilter, string> = {
  conversation: 'messages',
  yours: 'your messages',
  labeled: 'labeled',
  all: 'all',
}
const questions: Record<Typing['type'], string> = {
  search: 'Search:',
  label: 'Label (empty to remove):',
  summary: 'Summarize the branch you leave. What should the summary keep? (optional)',
}

/** The whole tree of a session: its branches, the current entry, and a way to every entry. */
export class TreePanel extends FramedPanel {
  readonly #options: TreePanelOptions
  readonly #rows = new TreeRows()
  readonly #list = new ListWindow()
  #typing: Typing | undefined
  #search = ''

  constructor(options: TreePanelOptions) {
    super(options.theme)
    this.#options = options
    this.#rows.replace(options.tree)
    this.#list.setCount(this.#rows.count)
    this.#list.select(this.#rows.positionOf(this.#rows.leafId))
  }

  update(tree: TreeData): void {
    this.#keepSelected(() => this.#rows.replace(tree))
  }

  handleInput(data: string): void {
    if (this.#typing) this.#type(this.#typing, data)
    else if (matchesKey(data, 'escape')) this.#escape()
    else if (matchesKey(data, 'enter')) this.#go()
    else if (matchesKey(data, 'tab')) this.#nextFilter()
    else if (matchesKey(data, 'left')) this.#foldOrRise()
    else if (matchesKey(data, 'right')) this.#unfold()
    else if (!this.#list.handleInput(data)) this.#act(typedText(data))
  }

  protected content(): FrameContent {
    const found = this.#search === '' ? filterNames[this.#rows.filter] : `“${this.#search}”`
    return {
      title: 'Session tree',
      aside: `${found}, ${this.#rows.count}`,
      hints: this.#typing
        ? ['Enter confirm', 'Esc back']
        : [
            'Enter go there',
            's with a summary',
            'f fork',
            'c compare',
            'l label',
            '/ search',
            'Tab filter',
            '←→ fold',
            'z fold all',
            'Esc close',
          ],
      body: (room) => this.#body(room),
    }
  }

  #body({ width, rows }: Room): string[] {
    const { theme } = this
    const typing = this.#typing
    const field = typing
      ? [theme.muted(questions[typing.type]), ...typing.field.render({ width, rows: 2, focused: this.focused })]
      : []
    const { from, to } = this.#list.range(rows - field.length)
    const lines: string[] = []
    for (let position = from; position < to; position++) {
      const row = this.#rows.at(position)
      if (!row) continue
      const isSelected = position === this.#list.selected
      lines.push(treeLine(row, { isSelected, hidden: this.#rows.hiddenBy(row), theme, width }))
    }
    if (lines.length === 0) lines.push(theme.muted('No entries. Tab shows all, Esc ends a search.'))
    return [...lines, ...field]
  }

  #act(key: string | undefined): void {
    const selected = this.#rows.at(this.#list.selected)
    const row = selected?.type === 'entry' ? selected : undefined
    if (key === '/') this.#ask('search', undefined, this.#search)
    else if (key === 'z') this.#keepSelected(() => this.#rows.foldAll())
    else if (!row) return
    else if (key === 'l') this.#ask('label', row, row.label ?? '')
    else if (key === 's') this.#ask('summary', row, '')
    else if (key === 'f') this.#options.onFork(row.id)
    else if (key === 'c') this.#options.onCompare(row.id)
  }

  #ask(type: Typing['type'], row: EntryRow | undefined, text: string): void {
    this.#typing = { type, row, field: new TextField({ theme: this.theme, text }) }
  }

  #type({ type, row, field }: Typing, data: string): void {
    if (matchesKey(data, 'escape')) {
      this.#typing = undefined
      if (type === 'search') this.#searchFor('')
    } else if (matchesKey(data, 'enter')) {
      this.#typing = undefined
      const text = field.text.trim()
      if (row && type === 'label') this.#options.onLabel(row.id, text)
      if (row && type === 'summary') {
        this.#options.onGo(row.id, { summarize: true, ...(text !== '' && { instructions: text }) })
      }
    } else if (type === 'search' && this.#list.handleInput(data)) return
    else if (field.handleInput(data) && type === 'search') this.#searchFor(field.text)
  }

  #searchFor(text: string): void {
    this.#search = text
    this.#keepSelected(() => this.#rows.searchFor(text))
  }

  #escape(): void {
    if (this.#search === '') this.#options.onClose()
    else this.#searchFor('')
  }

  #go(): void {
    const row = this.#rows.at(this.#list.selected)
    if (row?.type === 'entry') this.#options.onGo(row.id, {})
    else if (row?.sessionId !== undefined) this.#options.onOpenSession(row.sessionId)
  }

  #nextFilter(): void {
    const next = filters[(filters.indexOf(this.#rows.filter) + 1) % filters.length]
    this.#keepSelected(() => this.#rows.filterBy(next ?? 'conversation'))
  }

  /** Folds the side branch that begins here, or moves up to its start. */
  #foldOrRise(): void {
    const row = this.#rows.at(this.#list.selected)
    if (!row) return
    if (this.#rows.canFold(row)) return this.#keepSelected(() => this.#rows.fold(row.id, true))
    const start = this.#rows.branchOf(row)
    if (start) this.#list.select(this.#rows.positionOf(start.id))
  }

  #unfold(): void {
    const row = this.#rows.at(this.#list.selected)
    if (row) this.#keepSelected(() => this.#rows.fold(row.id, false))
  }

  #keepSelected(change: () => void): void {
    const id = this.#rows.at(this.#list.selected)?.id
    change()
    this.#list.setCount(this.#rows.count)
    this.#list.select(this.#rows.positionOf(id))
  }
}

/** One row: `● ` is on the current path, `◆ ` is the current entry, `○ ` elsewhere, `⤷ ` a subagent. */
function treeLine(
  row: TreeRow,
  { isSelected, hidden, theme, width }: { isSelected: boolean; hidden: number; theme: Theme; width: number },
): string {
  const lines = branchLines(row, { isFolded: hidden > 0, most: Math.floor(width / 6) })
  if (row.type === 'subagent') {
    const text = `${lines}⤷ ${harmlessLine(row.description)}`
    return listRow({ isSelected, text, style: theme.muted, aside: row.state }, theme, width)
  }
  const { kind, words } = describeEntry(row.entry)
  const mark = row.isLeaf ? '◆' : row.isOnPath ? '●' : '○'
  const text = `${lines}${mark} ${kind}: ${harmlessLine(words.slice(0, width * 4))}`
  const label = row.label === undefined ? '' : `[${fitText(harmlessLine(row.label), Math.floor(width / 3))}]`
  const more = hidden === 0 ? '' : `+${hidden}`
  const aside = [more, label].filter(Boolean).join(' ')
  const style = styleOf(row, theme)
  return listRow({ isSelected, text, ...(style && { style }), aside }, theme, width)
}

/** Two columns per branch. Very deep rows leave out the outer lines, with an ellipsis. */
function branchLines(row: TreeRow, { isFolded, most }: { isFolded: boolean; most: number }): string {
  if (row.depth === 0) return ''
  const depth = Math.min(row.depth, Math.max(1, most))
  const outer = (depth < row.depth ? '…' : '│').padEnd(2)
  const isStart = row.type === 'entry' && row.isBranchStart
  const own = isStart ? (isFolded ? '├▸' : '├─') : row.type === 'subagent' ? '  ' : '│ '
  return (depth > 1 ? outer + '│ '.repeat(depth - 2) : '') + own
}

function styleOf(row: Extract<TreeRow, { type: 'entry' }>, theme: Theme): Style | undefined {
  const { entry, isOnPath } = row
  if (entry.type === 'gap') return theme.warning
  if (entry.type === 'message' && entry.message.role === 'user') return isOnPath ? theme.accent : undefined
  return isOnPath && entry.type === 'message' && entry.message.role === 'assistant' ? undefined : theme.muted
}
