import { matchesKey } from '@earendil-works/pi-tui'
import type { SearchHit, SessionInfo } from '@tapetree/session'
import { counted, ageOf, costText } from '../../text/amounts.ts'
import { fitText } from '../../text/display-width.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { shortIds, sessionTitle } from '../../text/describe-entry.ts'
import type { Theme } from '../theme.ts'
import { listRow, ListWindow } from './parts/list.ts'
import { FramedPanel, type FrameContent, type Room } from './parts/panel-frame.ts'
import { TextField, typedText } from './parts/text-field.ts'
import { wordWrapped } from './parts/text-wrap.ts'

export interface SessionPickerData {
  sessions: readonly SessionInfo[]
  scope: SessionScope
  /** Still loading. */
  isLoading?: boolean
  /** The results of `onSearch` for a text. */
  found?: { text: string; hits: readonly SearchHit[] }
}

/** Sessions of the working folder, or all. */
export type SessionScope = 'folder' | 'all'

/** Actions without a callback are hidden. */
interface SessionPickerOptions {
  theme: Theme
  data: SessionPickerData
  /** The session that is open. */
  currentId?: string
  now?: () => number
  onOpen: (sessionId: string, entryId?: string) => void
  onScope: (scope: SessionScope) => void
  /** Requests a search of messages; the results arrive with `update`. */
  onSearch?: (text: string) => void
  onFork?: (sessionId: string) => void
  onRename?: (sessionId: string, name: string) => void
  onArchive?: (sessionId: string) => void
  /** Already confirmed here. */
  onDelete?: (sessionId: string) => void
  onClose: () => void
}

const pauseMs = 400

type Asking = { type: 'rename'; session: SessionInfo; field: TextField } | { type: 'delete'; session: SessionInfo }

/** Finds a session by name or by its messages. `close` cancels the delayed search. */
export class SessionPicker extends FramedPanel {
  readonly #options: SessionPickerOptions
  readonly #list = new ListWindow()
  readonly #field: TextField
  #data: SessionPickerData
  #rows: SessionRow[] = []
  #shortIds: ReadonlyMap<string, string> = new Map()
  #asking: Asking | undefined
  #searched = ''
  #pause: NodeJS.Timeout | undefined

  constructor(options: SessionPickerOptions) {
    super(options.theme)
    this.#options = options
    this.#field = new TextField({ theme: options.theme })
    this.#data = options.data
    this.#find()
    this.#list.select(this.#rows.findIndex(({ sessionId }) => sessionId === options.currentId))
  }

  update(data: SessionPickerData): void {
    const selected = this.#rows[this.#list.selected]
    this.#data = data
    this.#find()
    const same = this.#rows.findIndex(
      ({ sessionId, entryId }) => sessionId === selected?.sessionId && entryId === selected.entryId,
    )
    if (same >= 0) this.#list.select(same)
  }

  close(): void {
    clearTimeout(this.#pause)
  }

  handleInput(data: string): void {
    if (this.#asking) this.#answer(this.#asking, data)
    else if (matchesKey(data, 'escape')) this.#escape()
    else if (matchesKey(data, 'enter')) this.#open()
    else if (matchesKey(data, 'tab')) this.#options.onScope(this.#data.scope === 'all' ? 'folder' : 'all')
    else if (!this.#act(data) && !this.#list.handleInput(data) && this.#field.handleInput(data)) this.#typed()
  }

  protected content(): FrameContent {
    const { onFork, onRename, onArchive, onDelete } = this.#options
    const { scope, isLoading } = this.#data
    return {
      title: scope === 'all' ? 'All sessions' : 'Sessions of this folder',
      aside: isLoading ? 'loading …' : String(this.#rows.length),
      hints: this.#asking
        ? [this.#asking.type === 'rename' ? 'Enter rename' : 'y delete', 'Esc back']
        : [
            'type to search',
            'Enter open',
            scope === 'all' ? 'Tab this folder' : 'Tab all folders',
            ...(onFork ? ['Ctrl-B branch off'] : []),
            ...(onRename ? ['Ctrl-N name'] : []),
            ...(onArchive ? ['Ctrl-X archive'] : []),
            ...(onDelete ? ['Ctrl-K delete'] : []),
            'Esc close',
          ],
      body: (room) => this.#body(room),
    }
  }

  #body({ width, rows }: Room): string[] {
    const { theme } = this
    const asking = this.#askingLines(width)
    const preview = rows > 9 ? this.#preview(width) : []
    const { from, to } = this.#list.range(rows - 1 - asking.length - preview.length)
    const list = this.#rows.slice(from, to).map(({ text, aside, sessionId }, index) => {
      const isCurrent = sessionId === this.#options.currentId
      const isSelected = from + index === this.#list.selected
      return listRow({ isSelected, text: `${isCurrent ? '✓ ' : ''}${text}`, aside }, theme, width)
    })
    if (list.length === 0) list.push(theme.muted(this.#nothing()))
    const search = `/ ${this.#field.render({ width: width - 2, rows: 1, focused: this.focused && !this.#asking })[0]}`
    return [search, ...list, ...preview, ...asking]
  }

  #nothing(): string {
    if (this.#data.isLoading) return 'Looking …'
    if (this.#field.text === '') return 'There are no sessions yet.'
    const canSearch = this.#options.onSearch && this.#searched !== this.#field.text
    return canSearch ? 'No session has this name. Enter searches messages.' : 'No matches.'
  }

  /** Details of the selected session: id, folder and first message. */
  #preview(width: number): string[] {
    const session = this.#rows[this.#list.selected]?.session
    if (!session) return []
    const { id, cwd, firstText = '', messageCount, estimated } = session
    const count = estimated ? `at least ${messageCount} messages` : counted(messageCount, 'message')
    const place = [this.#shortIds.get(id) ?? id, harmlessLine(cwd ?? ''), count].filter(Boolean).join(' · ')
    const words = wordWrapped(harmlessLine(firstText.slice(0, width * 3)), width).slice(0, 2)
    return ['', fitText(place, width), ...words].map((line) => this.theme.muted(line))
  }

  #askingLines(width: number): string[] {
    if (!this.#asking) return []
    const { session } = this.#asking
    if (this.#asking.type === 'rename') {
      return ['', 'New name:', ...this.#asking.field.render({ width, rows: 1, focused: this.focused })]
    }
    const question = `Delete “${shownTitle(session)}” with ${counted(session.messageCount, 'message')}? y / n`
    return ['', ...wordWrapped(question, width).map((line) => this.theme.warning(line))]
  }

  /** False if the key is not handled here. */
  #act(data: string): boolean {
    const { onFork, onRename, onArchive, onDelete } = this.#options
    const session = this.#rows[this.#list.selected]?.session
    if (!session) return false
    if (onFork && matchesKey(data, 'ctrl+b')) onFork(session.id)
    else if (onRename && matchesKey(data, 'ctrl+n')) {
      this.#asking = { type: 'rename', session, field: new TextField({ theme: this.theme, text: session.name }) }
    } else if (onArchive && matchesKey(data, 'ctrl+x')) onArchive(session.id)
    else if (onDelete && matchesKey(data, 'ctrl+k')) this.#asking = { type: 'delete', session }
    else return false
    return true
  }

  #answer(asking: Asking, data: string): void {
    const { onRename, onDelete } = this.#options
    const isDone = asking.type === 'delete' || matchesKey(data, 'enter') || matchesKey(data, 'escape')
    if (isDone) this.#asking = undefined
    if (asking.type === 'delete') {
      if (typedText(data) === 'y') onDelete?.(asking.session.id)
    } else if (!isDone) asking.field.handleInput(data)
    else if (matchesKey(data, 'enter') && asking.field.text.trim() !== '')
      onRename?.(asking.session.id, asking.field.text.trim())
  }

  #escape(): void {
    this.close()
    if (this.#field.text === '') return this.#options.onClose()
    this.#field.text = ''
    this.#find()
    this.#list.select(0)
  }

  #open(): void {
    const row = this.#rows[this.#list.selected]
    this.close()
    if (row) this.#options.onOpen(row.sessionId, row.entryId)
    else this.#search()
  }

  #typed(): void {
    this.#find()
    this.#list.select(0)
    this.close()
    this.#pause = setTimeout(() => this.#search(), pauseMs).unref()
  }

  #search(): void {
    const text = this.#field.text.trim()
    if (text === '' || text === this.#searched) return
    this.#searched = text
    this.#options.onSearch?.(text)
  }

  #find(): void {
    const { sessions, found } = this.#data
    const text = this.#field.text.trim()
    const hits = found && text !== '' && found.text === text ? found.hits : []
    this.#rows = sessionRows(sessions, { text, hits, now: (this.#options.now ?? Date.now)() })
    this.#shortIds = shortIds(this.#rows.map(({ sessionId }) => sessionId))
    this.#list.setCount(this.#rows.length)
  }
}

interface SessionRow {
  sessionId: string
  /** The entry of a message that matched. */
  entryId?: string
  /** Absent for a match whose session is not in the list. */
  session?: SessionInfo
  text: string
  aside: string
}

/** Sessions whose name, first message or folder contains the typed text, or whose id begins with it; then matching messages. */
function sessionRows(
  sessions: readonly SessionInfo[],
  { text, hits, now }: { text: string; hits: readonly SearchHit[]; now: number },
): SessionRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const named = sessions.filter(({ id, name, firstText = '', cwd = '' }) => {
    const searched = `${name} ${firstText} ${cwd}`.toLowerCase()
    return words.every((word) => searched.includes(word) || (word.length >= minIdLength && id.startsWith(word)))
  })
  const byId = new Map(sessions.map((session) => [session.id, session]))
  return [
    ...named.map((session) => sessionRow(session, now)),
    ...hits.map((hit) => hitRow(hit, byId.get(hit.sessionId), now)),
  ]
}

/** The shortest id prefix that matches. */
const minIdLength = 4

/** The name shown on the screen. */
function shownTitle(session: SessionInfo): string {
  return sessionTitle(session) || 'no messages yet'
}

function sessionRow(session: SessionInfo, now: number): SessionRow {
  const { id, name, firstText, modified, cost, damaged } = session
  const preview = name !== '' && firstText !== undefined ? ` – ${harmlessLine(firstText)}` : ''
  const state = [damaged ? 'damaged' : '', statusWords(session), cost > 0 ? costText(cost) : '']
  const aside = [...state, ageOf(modified, now)].filter(Boolean).join(' ')
  return { sessionId: id, session, text: `${shownTitle(session)}${preview}`, aside }
}

function statusWords({ status, queueLength }: SessionInfo): string {
  switch (status) {
    case 'running':
      return 'running'
    case 'requires_action':
      return 'waiting for you'
    case 'ended':
      return 'ended'
    case 'idle':
      return queueLength > 0 ? `${queueLength} waiting` : ''
    default:
      status satisfies never
      return ''
  }
}

function hitRow(
  { sessionId, entryId, snippet, timestamp, role }: SearchHit,
  session: SessionInfo | undefined,
  now: number,
): SessionRow {
  const who = harmlessLine(role)
  const where = session ? `${fitText(shownTitle(session), 24)}: ` : ''
  const text = `${where}${who}: … ${harmlessLine(snippet)}`
  return { sessionId, entryId, ...(session && { session }), text, aside: ageOf(timestamp, now) }
}
