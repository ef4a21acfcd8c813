import { matchesKey } from '@earendil-works/pi-tui'
import type { ListedMessage, StateValues } from '@tapetree/client'
import type { Delivery } from '@tapetree/session/format'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { listRow, ListWindow } from './parts/list.ts'
import { FramedPanel, type FrameContent, type Room } from './parts/panel-frame.ts'
import { TextField, typedText } from './parts/text-field.ts'
import { wordWrapped } from './parts/text-wrap.ts'

interface QueuePanelOptions {
  theme: Theme
  queue: StateValues['queue']
  /** The full text of a message that was cut; undefined if it is not available. */
  fullText: (id: string) => string | undefined
  onEdit: (id: string, message: string) => void
  /** Null: to the end. */
  onMove: (id: string, beforeId: string | null) => void
  /** Without an id, all messages. */
  onHold: (id?: string) => void
  onRelease: (id?: string) => void
  onRemove: (id: string) => void
  /** Restores a removed message. */
  onPaste: (removed: { message: string; imageIds: string[]; delivery: Delivery }) => void
  onDelivery: (id: string, delivery: Delivery) => void
  onClose: () => void
}

/** Queued messages, to edit, move, hold and remove. Shows changes by other clients at once. */
export class QueuePanel extends FramedPanel {
  readonly #options: QueuePanelOptions
  readonly #list = new ListWindow()
  #queue: StateValues['queue']
  #editing: { id: string; before: string; field: TextField } | undefined
  #removed: ListedMessage | undefined
  #notice = ''

  constructor(options: QueuePanelOptions) {
    super(options.theme)
    this.#options = options
    this.#queue = options.queue
    this.#list.setCount(options.queue.messages.length)
  }

  /** Keeps the selection when a message moves. */
  update(queue: StateValues['queue']): void {
    const selected = this.#selected()?.id
    this.#queue = queue
    this.#list.setCount(queue.messages.length)
    const index = queue.messages.findIndex(({ id }) => id === selected)
    if (index >= 0) this.#list.select(index)
    const { id } = this.#editing ?? {}
    if (id === undefined || queue.messages.some((message) => message.id === id)) return
    this.#notice = 'The message was delivered or removed while you edited it. Enter adds your text as a new message.'
  }

  handleInput(data: string): void {
    if (this.#editing) return this.#edit(this.#editing, data)
    this.#notice = ''
    if (matchesKey(data, 'escape')) this.#options.onClose()
    else if (matchesKey(data, 'shift+up') || matchesKey(data, 'alt+up')) this.#move(-1)
    else if (matchesKey(data, 'shift+down') || matchesKey(data, 'alt+down')) this.#move(1)
    else if (!this.#list.handleInput(data)) this.#act(matchesKey(data, 'enter') ? 'e' : typedText(data))
  }

  protected content(): FrameContent {
    const { messages, total, hold } = this.#queue
    const release = hold ? 'H release all' : 'H hold all'
    return {
      title: 'Queued messages',
      aside: String(Math.max(total, messages.length)),
      hints: this.#editing
        ? ['Enter save', 'Shift-Enter new line', 'Esc discard changes']
        : [
            'Enter edit',
            'Shift-↑↓ move',
            's steer or follow-up',
            'h hold',
            release,
            'x remove',
            ...(this.#removed ? ['p restore'] : []),
            'Esc close',
          ],
      body: (room) => this.#body(room),
    }
  }

  #body({ width, rows }: Room): string[] {
    const { theme } = this
    const { messages, total, hold } = this.#queue
    const held = hold ? wordWrapped(`Held: ${harmlessLine(hold.reason)}. H releases all.`, width) : []
    const notice = wordWrapped(this.#notice, width).filter(Boolean)
    const missing = total - messages.length
    const more = missing > 0 ? [theme.muted(`  … and ${missing} more that are not listed`)] : []
    const above = [...held, ...notice].map((line) => theme.warning(line))
    if (messages.length === 0 && !this.#editing) return [...above, theme.muted('The queue is empty.')]
    const field =
      this.#editing?.field.render({ width: width - 2, rows: Math.min(6, rows - 2), focused: this.focused }) ?? []
    const { from, to } = this.#list.range(Math.max(1, rows - above.length - more.length - field.length))
    const list = messages.slice(from, to).map((message, index) => this.#row(message, from + index, width))
    const at = messages.findIndex(({ id }) => id === this.#editing?.id)
    const place = at === -1 ? list.length : Math.max(0, at - from + 1)
    list.splice(place, 0, ...field.map((line) => `  ${line}`))
    return [...above, ...list, ...more]
  }

  #row({ message, delivery, held, imageIds, truncated }: ListedMessage, index: number, width: number): string {
    const isSelected = index === this.#list.selected
    const images = imageIds.length === 0 ? '' : ` [${counted(imageIds.length, 'image')}]`
    const text = `${index + 1}. ${harmlessLine(message)}${truncated ? ' …' : ''}${images}`
    return listRow({ isSelected, text, aside: `${held ? 'held ' : ''}${delivery}` }, this.theme, width)
  }

  #act(key: string | undefined): void {
    const { onHold, onRelease, onRemove, onDelivery, onPaste } = this.#options
    if (key === 'H') return this.#queue.hold ? onRelease() : onHold()
    if (key === 'p' && this.#removed) {
      const { message, imageIds, delivery } = this.#removed
      this.#removed = undefined
      return onPaste({ message, imageIds, delivery })
    }
    const selected = this.#selected()
    if (!selected) return
    const { id, held, delivery } = selected
    if (key === 'e') this.#beginEdit(selected)
    else if (key === 'h') (held ? onRelease : onHold)(id)
    else if (key === 's') onDelivery(id, delivery === 'steer' ? 'follow-up' : 'steer')
    else if (key === 'x') {
      const message = this.#wholeText(selected)
      this.#removed = message === undefined ? undefined : { ...selected, message }
      this.#notice = this.#removed ? 'Removed. p restores it at the end.' : 'Removed.'
      onRemove(id)
    }
  }

  #move(by: -1 | 1): void {
    const { messages } = this.#queue
    const selected = this.#selected()
    const from = this.#list.selected
    if (!selected || from + by < 0 || from + by >= messages.length) return
    const before = messages[by === -1 ? from - 1 : from + 2]
    this.#options.onMove(selected.id, before?.id ?? null)
  }

  #beginEdit(message: ListedMessage): void {
    const text = this.#wholeText(message)
    if (text === undefined) this.#notice = 'The text is too long to load here, so it cannot be edited.'
    else {
      const field = new TextField({ theme: this.theme, text, isMultiline: true })
      this.#editing = { id: message.id, before: field.text, field }
    }
  }

  #edit({ id, before, field }: { id: string; before: string; field: TextField }, data: string): void {
    if (matchesKey(data, 'escape')) this.#editing = undefined
    else if (!matchesKey(data, 'enter')) field.handleInput(data)
    else if (field.text.trim() === '') this.#notice = 'An empty message cannot be sent. x removes it.'
    else {
      this.#editing = undefined
      this.#notice = ''
      const isThere = this.#queue.messages.some((message) => message.id === id)
      if (!isThere) this.#options.onPaste({ message: field.text, imageIds: [], delivery: 'follow-up' })
      else if (field.text !== before) this.#options.onEdit(id, field.text)
    }
  }

  #wholeText({ id, message, truncated }: ListedMessage): string | undefined {
    return truncated ? this.#options.fullText(id) : message
  }

  #selected(): ListedMessage | undefined {
    return this.#queue.messages[this.#list.selected]
  }
}
