import { matchesKey } from '@earendil-works/pi-tui'
import type { RequestAnswer, OpenQuestion } from '@tapetree/client'
import { changedFiles, type DiffFile } from '@tapetree/session/screen'
import { harmlessLine } from '../../text/harmless.ts'
import { Highlighter } from '../markdown/highlight.ts'
import { hardWrapLine, paint } from '../markdown/wrap-line.ts'
import type { Theme } from '../theme.ts'
import { countSpans, DiffView } from '../views/diff-view.ts'
import { commandRows, wordRows } from './parts/command-rows.ts'
import { OptionBlock, QuietKeys } from './parts/option-block.ts'
import { FramedPanel, type FrameContent, type Room } from './parts/panel-frame.ts'
import { permissionText, seen } from './permission-text.ts'
import { joinLines, ScrollText, type ScrolledLines } from './parts/scroll-text.ts'
import { TextField, typedText } from './parts/text-field.ts'
import { hardWrapped, wordWrapped } from './parts/text-wrap.ts'

interface PermissionDialogOptions {
  theme: Theme
  /** Pending requests, oldest first; at least one. */
  requests: readonly OpenQuestion[]
  now?: () => number
  /** The working folder: paths below it are shortened. */
  cwd?: string | undefined
  /** The home folder: other folders below it begin with `~`. */
  home?: string | undefined
  /** What a request to change a file would change, with its place in the file; undefined if that is unknown. */
  preview?: (request: OpenQuestion) => Promise<readonly DiffFile[] | undefined>
  /** The name of the subagent that works in a session. */
  subagentName?: (sessionId: string) => string | undefined
  /** Something must be redrawn. */
  onChange?: () => void
  onAnswer: (requestId: string, answer: RequestAnswer) => void
  /** No request is left, or the user postpones the answer. */
  onClose: () => void
}

interface Way {
  label: string
  answer: RequestAnswer
  /** The user gives a reason. */
  hasWords: boolean
}

/** Asks whether a tool may run. One request at a time; the next appears after the answer. */
export class PermissionDialog extends FramedPanel {
  readonly #options: PermissionDialogOptions
  readonly #keys: QuietKeys
  readonly #scroll = new ScrollText()
  readonly #answered = new Set<string>()
  #block: OptionBlock
  #requests: readonly OpenQuestion[]
  #current: OpenQuestion | undefined
  #words: { field: TextField; way: Way } | undefined
  /** The outcome of the previous request. */
  #notice = ''
  #wasEarly = false
  #change: { requestId: string; view: DiffView } | undefined
  /** The command as it was drawn last. */
  #command: { text: string; width: number; rows: readonly string[] } | undefined
  readonly #highlighter: Highlighter
  isFullScreen = false

  constructor(options: PermissionDialogOptions) {
    super(options.theme)
    this.#options = options
    this.#highlighter = new Highlighter(() => {
      this.#change?.view.forget()
      options.onChange?.()
    })
    this.#keys = new QuietKeys(options.now ?? Date.now)
    this.#requests = options.requests
    this.#current = options.requests[0]
    this.#block = this.#newBlock()
    this.#loadChange()
  }

  /** The requests that are pending now. */
  update(requests: readonly OpenQuestion[]): void {
    this.#requests = requests
    const current = requests.find(({ requestId }) => requestId === this.#current?.requestId)
    if (current && !this.#answered.has(current.requestId)) this.#current = current
    else if (this.#current && !this.#answered.has(this.#current.requestId))
      this.dismiss('This was answered on another screen.')
    else this.#next()
  }

  /** Another client answered the current request. Says so and shows the next one; after the last one, any key closes the dialog. */
  dismiss(reason: string): void {
    this.#notice = harmlessLine(reason)
    if (this.#current) this.#answered.add(this.#current.requestId)
    this.#next()
  }

  override render(width: number): string[] {
    this.#keys.seen()
    return super.render(width)
  }

  handleInput(data: string): void {
    this.#wasEarly = !this.#keys.admits()
    if (this.#wasEarly) return
    if (!this.#current) this.#options.onClose()
    else if (this.#words) this.#typeWords(this.#words, data)
    else if (matchesKey(data, 'escape')) {
      if (this.isFullScreen) this.isFullScreen = false
      else this.#options.onClose()
    } else if (typedText(data) === 'f') this.isFullScreen = !this.isFullScreen
    else if (!this.#scroll.handleInput(data)) {
      const index = this.#block.handleInput(data)
      if (index !== undefined) this.#take(this.#current, this.#ways()[index])
    }
  }

  protected content(): FrameContent {
    if (!this.#current)
      return { title: 'Permission', hints: ['any key closes'], body: ({ width }) => this.#noticeLines(width) }
    const waiting = this.#waiting()
    return {
      title: `Allow ${harmlessLine(this.#current.tool)}?`,
      ...(waiting.length > 1 && { aside: `1 of ${waiting.length}` }),
      hints: this.#words
        ? ['Enter send', 'Esc back']
        : [
            '↑↓ choose',
            `Enter or 1–${this.#ways().length} answer`,
            'PgUp PgDn read',
            this.isFullScreen ? 'f smaller' : 'f full screen',
            'Esc later',
          ],
      body: (room) => this.#body(this.#current as OpenQuestion, room),
    }
  }

  #body(request: OpenQuestion, { width, rows }: Room): string[] {
    const { theme } = this
    const why = this.#why(request)
    const asker = this.#asker(request)
    const notice = [
      ...this.#noticeLines(width),
      ...(asker === '' ? [] : wordWrapped(asker, width).map((line) => theme.accent(line))),
    ]
    const reason = why === '' ? [] : ['', ...wordWrapped(why, width).map((line) => theme.muted(line))]
    const isLow = rows < 10
    const leastText = isLow ? 1 : 3
    const gap = isLow ? [] : ['']
    const left = Math.max(1, rows - leastText - gap.length - notice.length)
    const below = this.#words
      ? [
          ...gap,
          'Do not allow, because:',
          ...this.#words.field.render({ width, rows: Math.min(3, left), focused: this.focused }),
        ]
      : [...gap, ...this.#block.render({ theme, width, rows: left })]
    const text = this.#text(request, width)
    const hasRoom = rows - notice.length - below.length - reason.length >= leastText
    const room = rows - notice.length - below.length - (hasRoom ? reason.length : 0)
    const shown = this.#scroll.render(hasRoom ? text : joinLines(text, reason), {
      theme,
      width,
      rows: Math.max(1, room),
    })
    return [...notice, ...shown, ...(hasRoom ? reason : []), ...below]
  }

  /** A subagent asks in the session of its parent, with its own session before the id of the call. */
  #asker({ callId = '' }: OpenQuestion): string {
    const at = callId.indexOf('/')
    if (at < 0) return ''
    const name = this.#options.subagentName?.(callId.slice(0, at))
    return name === undefined || name === '' ? 'A subagent asks.' : `The subagent “${harmlessLine(name)}” asks.`
  }

  /** Why it asks. A reason that only repeats the path of a change is left out. */
  #why(request: OpenQuestion): string {
    const { what, why } = permissionText(request)
    const path = what.startsWith('Write ') ? what.slice('Write '.length) : undefined
    return this.#change && why === `It writes ${path}.` ? '' : why
  }

  /** The full effect of the call: a change as a diff, everything else as it is. */
  #text(request: OpenQuestion, width: number): ScrolledLines {
    const { theme } = this
    const { what, input, run } = permissionText(request)
    const cut =
      'truncated' in request && request.truncated
        ? ['', theme.warning('The input is too long to show here. The conversation shows it.')]
        : []
    const rest = (shown: typeof input): string[] => shown.flatMap((each) => ['', ...inputLines(each, { theme, width })])
    if (this.#change?.requestId !== request.requestId) {
      return [...(run ? this.#run(run, width) : bold(what, { theme, width })), ...rest(input), ...cut]
    }
    const { view } = this.#change
    const path = shortPath(what, this.#options.cwd)
    const head = [{ text: path, style: theme.strong }, { text: '  ' }, ...countSpans(view.counts, theme)]
    const others = rest(input.filter(({ name }) => !changeInputs.has(name)))
    return joinLines(joinLines(hardWrapLine(head, width).map(paint), diffRows(view, width)), [...others, ...cut])
  }

  /** The folder is named if it is not the working folder. */
  #run({ command, folder }: { command: string; folder: string }, width: number): string[] {
    const { theme } = this
    const place = shortFolder(folder, this.#options)
    const where = place === undefined ? [] : bold(`Run in ${place}:`, { theme, width })
    if (this.#command?.text !== command || this.#command.width !== width) {
      this.#command = { text: command, width, rows: commandRows(command, { theme, width }) }
    }
    return [...where, ...this.#command.rows]
  }

  /** Shows the change as the model described it, until its place in the file is known. */
  #loadChange(): void {
    const request = this.#current
    this.#change = undefined
    if (!request || (request.tool !== 'edit' && request.tool !== 'write') || !request.input) return
    const { requestId, input } = request
    const show = (files: readonly DiffFile[]): void => {
      this.#change = { requestId, view: new DiffView(files, { theme: this.theme, highlighter: this.#highlighter }) }
    }
    const shown = Object.entries(input).map(([name, value]) => [
      name,
      typeof value === 'string' ? seen(value).replaceAll('\t', '    ') : value,
    ])
    show(changedFiles(Object.fromEntries(shown), ''))
    void this.#options.preview?.(request).then(
      (files) => {
        if (!files || this.#current?.requestId !== requestId) return
        show(files)
        this.#options.onChange?.()
      },
      // The change is shown without line numbers.
      () => undefined,
    )
  }

  #noticeLines(width: number): string[] {
    const said = this.#wasEarly ? 'That key was ignored: this dialog had just appeared. Press it again.' : this.#notice
    return said === '' ? [] : wordWrapped(said, width).map((line) => this.theme.warning(line))
  }

  #typeWords({ field, way }: { field: TextField; way: Way }, data: string): void {
    if (matchesKey(data, 'escape')) this.#words = undefined
    else if (matchesKey(data, 'enter')) {
      const text = field.text.trim()
      if (this.#current) this.#answer(this.#current, { ...way.answer, ...(text !== '' && { text }) })
    } else field.handleInput(data)
  }

  #take(request: OpenQuestion, way: Way | undefined): void {
    if (way?.hasWords) this.#words = { field: new TextField({ theme: this.theme, isMultiline: true }), way }
    else if (way) this.#answer(request, way.answer)
  }

  #answer({ requestId }: OpenQuestion, answer: RequestAnswer): void {
    this.#answered.add(requestId)
    this.#notice = ''
    this.#options.onAnswer(requestId, answer)
    this.#next()
  }

  /** Shows the next pending request. After our own last answer the dialog closes; after another client's it says so first. */
  #next(): void {
    const next = this.#waiting()[0]
    if (next === this.#current) return
    this.#current = next
    this.#words = undefined
    this.#block = this.#newBlock()
    this.#scroll.toStart()
    this.#keys.startAgain()
    this.isFullScreen = false
    this.#loadChange()
    if (!next && this.#notice === '') this.#options.onClose()
  }

  #waiting(): OpenQuestion[] {
    return this.#requests.filter(({ requestId }) => !this.#answered.has(requestId))
  }

  #newBlock(): OptionBlock {
    return new OptionBlock(this.#ways().map(({ label }) => shortLabel(label, this.#options.cwd)))
  }

  #ways(): Way[] {
    const options = this.#current?.options ?? []
    const ways = options.map(({ optionId, label }): Way => ({ label, answer: { optionId }, hasWords: false }))
    const all = ways.length > 0 ? ways : plainWays
    const reject = options.find(({ kind }) => kind === 'reject_once')
    const answer: RequestAnswer = reject ? { optionId: reject.optionId } : { outcome: 'rejected' }
    return [...all, { label: 'Do not allow, with a reason …', answer, hasWords: true }]
  }
}

function bold(text: string, { theme, width }: { theme: Theme; width: number }): string[] {
  const lines = text.replaceAll('\t', '    ').split('\n')
  return lines.flatMap((line) => wordRows([{ text: line, style: theme.strong }], width).map(paint))
}

function inputLines(
  { name, text }: { name: string; text: string },
  { theme, width }: { theme: Theme; width: number },
): string[] {
  const isShort = !text.includes('\n') && name.length + text.length + 2 <= width / 2
  return isShort ? [`${theme.muted(`${name}:`)} ${text}`] : [theme.muted(`${name}:`), ...hardWrapped(text, width)]
}

/** The diff says what these say. */
const changeInputs = new Set(['path', 'oldText', 'newText', 'content'])

/** Below the working folder `./src`, below the home folder `~/src`; undefined for the working folder itself. */
function shortFolder(folder: string, { cwd, home }: Pick<PermissionDialogOptions, 'cwd' | 'home'>): string | undefined {
  if (cwd !== undefined && folder === seen(cwd)) return undefined
  for (const [start, sign] of [
    [cwd, '.'],
    [home, '~'],
  ] as const) {
    if (start === undefined || start === '/') continue
    if (folder === seen(start)) return sign
    if (folder.startsWith(`${seen(start)}/`)) return sign + folder.slice(seen(start).length)
  }
  return folder
}

/** `Allow in this session: writing in /repo` as `… writing in this folder`. */
function shortLabel(label: string, cwd: string | undefined): string {
  const shown = harmlessLine(label)
  if (cwd === undefined) return shown
  const written = `writing in ${harmlessLine(cwd)}`
  const parts = shown
    .split(', ')
    .map((part) => (part.endsWith(written) ? `${part.slice(0, -written.length)}writing in this folder` : part))
  return parts.join(', ').replaceAll(`${written}/`, 'writing in ./')
}

/** `Write /repo/src/x.ts` as `src/x.ts`. The path is the real one, and complete if it is outside of the folder. */
function shortPath(what: string, cwd: string | undefined): string {
  if (!what.startsWith('Write ') || what.includes('\n')) return what
  const path = what.slice('Write '.length)
  const folder = cwd === undefined ? undefined : `${seen(cwd).replace(/\/$/, '')}/`
  return folder !== undefined && path.startsWith(folder) ? path.slice(folder.length) : path
}

function diffRows(view: DiffView, width: number): ScrolledLines {
  return { length: view.rowCount(width), slice: (from, to) => view.render(width, { from, to }) }
}

/** The options of a request that names none. */
const plainWays: readonly Way[] = [
  { label: 'Allow once', answer: { outcome: 'allowed' }, hasWords: false },
  { label: 'Do not allow', answer: { outcome: 'rejected' }, hasWords: false },
]
