import { matchesKey } from '@earendil-works/pi-tui'
import type { RequestAnswer, OpenQuestion } from '@tapetree/client'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { OptionBlock, QuietKeys } from './parts/option-block.ts'
import { FramedPanel, type FrameContent, type Room } from './parts/panel-frame.ts'
import { ScrollText } from './parts/scroll-text.ts'
import { TextField } from './parts/text-field.ts'
import { wordWrapped } from './parts/text-wrap.ts'

interface QuestionDialogOptions {
  theme: Theme
  /** Its options are answers. */
  request: OpenQuestion
  now?: () => number
  onAnswer: (requestId: string, answer: RequestAnswer) => void
  /** The user postpones the answer, or another client answered. */
  onClose: () => void
}

/** A question of the agent: one of its answers, several of them, or free text. */
export class QuestionDialog extends FramedPanel {
  readonly #options: QuestionDialogOptions
  readonly #keys: QuietKeys
  readonly #scroll = new ScrollText()
  readonly #block: OptionBlock
  readonly #field: TextField
  #isWriting: boolean
  #dismissed = ''

  constructor(options: QuestionDialogOptions) {
    super(options.theme)
    this.#options = options
    this.#keys = new QuietKeys(options.now ?? Date.now)
    const { request } = options
    this.#block = new OptionBlock([...request.options.map((option) => labelOf(option, request)), ownWords, noAnswer])
    this.#field = new TextField({ theme: options.theme, isMultiline: true })
    this.#isWriting = request.options.length === 0
  }

  /** Another client answered: says so, and any key closes it. */
  dismiss(reason: string): void {
    this.#dismissed = harmlessLine(reason)
  }

  override render(width: number): string[] {
    this.#keys.seen()
    return super.render(width)
  }

  handleInput(data: string): void {
    if (!this.#keys.admits()) return
    if (this.#dismissed !== '') this.#options.onClose()
    else if (this.#isWriting) this.#write(data)
    else if (matchesKey(data, 'escape')) this.#options.onClose()
    else if (matchesKey(data, 'space')) {
      if (this.#block.selected < this.#options.request.options.length) this.#block.tick(this.#block.selected)
    } else if (!this.#scroll.handleInput(data)) {
      const index = this.#block.handleInput(data)
      if (index !== undefined) this.#take(index, matchesKey(data, 'enter'))
    }
  }

  protected content(): FrameContent {
    if (this.#dismissed !== '') {
      return { title: 'Question', hints: ['any key closes'], body: ({ width }) => wordWrapped(this.#dismissed, width) }
    }
    const back = this.#options.request.options.length === 0 ? 'Esc later' : 'Esc back'
    return {
      title: 'The agent asks',
      hints: this.#isWriting
        ? ['Enter send', 'Shift-Enter new line', back]
        : ['↑↓ choose', 'Enter answer', 'Space select several', 'Esc later'],
      body: (room) => this.#body(room),
    }
  }

  #body({ width, rows }: Room): string[] {
    const { theme } = this
    const below = this.#isWriting
      ? ['', ...this.#field.render({ width, rows: Math.max(1, Math.min(6, rows - 3)), focused: this.focused })]
      : ['', ...this.#block.render({ theme, width, rows: Math.max(1, rows - (rows < 10 ? 2 : 4)) })]
    const question = wordWrapped(harmless(this.#options.request.title), width)
    const shown = this.#scroll.render(question, { theme, width, rows: Math.max(1, rows - below.length) })
    return [...shown, ...below]
  }

  #write(data: string): void {
    const { request, onClose } = this.#options
    const text = this.#field.text.trim()
    if (matchesKey(data, 'enter')) {
      if (text !== '') this.#answer({ outcome: 'allowed', text })
    } else if (!matchesKey(data, 'escape')) this.#field.handleInput(data)
    else if (request.options.length > 0) this.#isWriting = false
    else onClose()
  }

  /** Once an option is checked, digits check too, and Enter sends all checked options. */
  #take(index: number, isEnter: boolean): void {
    const { options } = this.#options.request
    const { ticked } = this.#block
    if (index === options.length) this.#isWriting = true
    else if (index > options.length) this.#answer({ outcome: 'cancelled' })
    else if (ticked.length > 0 && !isEnter) this.#block.tick(index)
    else if (ticked.length > 1) {
      const labels = ticked.flatMap((each) => options[each]?.label ?? [])
      this.#answer({ outcome: 'allowed', text: labels.join('\n') })
    } else {
      const optionId = options[ticked[0] ?? index]?.optionId
      if (optionId !== undefined) this.#answer({ optionId })
    }
  }

  #answer(answer: RequestAnswer): void {
    this.#options.onAnswer(this.#options.request.requestId, answer)
  }
}

const ownWords = 'Write my own answer …'
const noAnswer = 'Do not answer'

/** The meaning of an option is in the input of the call. */
function labelOf({ label }: { label: string }, { input }: OpenQuestion): string {
  const given = input?.['options']
  const same: unknown = Array.isArray(given) ? given.find((each) => isOption(each) && each.label === label) : undefined
  const description = isOption(same) ? same.description : undefined
  return harmlessLine(description === undefined ? label : `${label}: ${description}`)
}

function isOption(value: unknown): value is { label: string; description?: string } {
  if (typeof value !== 'object' || value === null || !('label' in value)) return false
  return !('description' in value) || typeof value.description === 'string'
}
