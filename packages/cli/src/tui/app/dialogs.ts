import type { RequestAnswer, OpenQuestion, SessionHandle } from '@tapetree/client'
import { harmlessLine } from '../../text/harmless.ts'
import { openMatters } from '../panels/open-matters.ts'
import type { Theme } from '../theme.ts'
import type { Panel, PanelPlace } from './panel-place.ts'
import type { Remarks } from '../chat/remarks.ts'

export interface DialogsOptions {
  panels: PanelPlace
  remarks: Remarks
  theme: Theme
  now: () => number
  handle: () => SessionHandle | undefined
  /** The home folder of the user. */
  home: string
  /** The working folder of the session; undefined if its files are not on this machine. */
  localFolder: () => string | undefined
  /** The name of the subagent that works in a session. */
  subagentName: (sessionId: string) => string | undefined
  /** Read-only clients are not asked. */
  mayAnswer: () => boolean
  onResume: () => void
  onChange: () => void
}

type Shown =
  | { type: 'permission'; panel: Panel & { update(requests: readonly OpenQuestion[]): void } }
  | { type: 'question'; requestId: string; panel: Panel & { dismiss(reason: string): void } }
  | { type: 'resume'; runId: string; panel: Panel }

/** Dialogs for the session: permissions, questions and interrupted runs. They open and close with the state of the session. */
export class Dialogs {
  readonly #options: DialogsOptions
  #shown: Shown | undefined
  /** Requests and runs that the user has postponed. */
  readonly #later = new Set<string>()
  readonly #answered = new Set<string>()
  #isOpening = false
  /** Loaded with the first request. */
  #isQuestion: (request: OpenQuestion) => boolean = () => false

  constructor(options: DialogsOptions) {
    this.#options = options
  }

  /** A postponed request is pending. */
  get hasPostponed(): boolean {
    return this.#later.size > 0 && this.#pending().some(({ requestId }) => this.#later.has(requestId))
  }

  /** Call after each change of the session. */
  sync(): void {
    this.#follow()
    if (this.#shown || this.#isOpening || !this.#options.mayAnswer()) return
    if (this.#waiting().length === 0 && this.#leftBehind() === undefined) return
    this.#isOpening = true
    void this.#openNext()
      .catch((error: unknown) => this.#options.remarks.fail(error))
      .finally(() => {
        this.#isOpening = false
        this.#options.onChange()
      })
  }

  /** Shows postponed requests again. */
  recall(): void {
    this.#later.clear()
    this.sync()
  }

  /** Another session is shown. */
  reset(): void {
    this.#close()
    this.#later.clear()
    this.#answered.clear()
  }

  /** Ctrl-C in a dialog that belongs to no run. */
  postpone(): void {
    if (this.#shown?.type === 'resume') this.#later.add(this.#shown.runId)
    else for (const { requestId } of this.#pending()) this.#later.add(requestId)
    this.#close()
  }

  #permissionsIn(requests: readonly OpenQuestion[]): OpenQuestion[] {
    return requests.filter((request) => !this.#isQuestion(request))
  }

  #pending(): readonly OpenQuestion[] {
    return this.#options.handle()?.transcript.permissions ?? []
  }

  /** The log may take a moment to confirm our own answer. */
  #waiting(): readonly OpenQuestion[] {
    return this.#pending().filter(({ requestId }) => !this.#later.has(requestId) && !this.#answered.has(requestId))
  }

  #leftBehind(): string | undefined {
    const waiting = this.#options.handle()?.state('run')?.waitingFor
    return waiting?.type === 'resume' && !this.#later.has(waiting.runId) ? waiting.runId : undefined
  }

  /** The request may have been answered on another screen. */
  #follow(): void {
    const shown = this.#shown
    if (!shown) return
    if (shown.type === 'permission') shown.panel.update(this.#permissionsIn(this.#pending()))
    else if (shown.type === 'question') {
      const isOpen = this.#pending().some(({ requestId }) => requestId === shown.requestId)
      if (!isOpen) shown.panel.dismiss('This was answered on another screen.')
    } else if (this.#leftBehind() !== shown.runId) this.#close()
  }

  async #openNext(): Promise<void> {
    const waiting = this.#waiting()
    const [next] = waiting
    const runId = this.#leftBehind()
    // The protocol is large, and nothing else on the first screen needs it.
    if (next) ({ isQuestion: this.#isQuestion } = await import('./open-question.ts'))
    if (next && this.#isQuestion(next)) await this.#openQuestion(next)
    else if (next) await this.#openPermission(this.#permissionsIn(waiting))
    else if (runId !== undefined) await this.#openResume(runId)
    if (this.#shown) this.#options.panels.ask(this.#shown.panel)
  }

  async #openPermission(requests: readonly OpenQuestion[]): Promise<void> {
    const [{ PermissionDialog }, { previewChange }] = await Promise.all([
      import('../panels/permission-dialog.ts'),
      import('./change-preview.ts'),
    ])
    const { theme, now, home, localFolder, subagentName, onChange } = this.#options
    const cwd = localFolder()
    const panel = new PermissionDialog({
      theme,
      requests,
      now,
      cwd,
      ...(cwd !== undefined && { home, preview: previewChange }),
      subagentName,
      onChange,
      onAnswer: (requestId, answer) => this.#answer(requestId, answer),
      onClose: () => this.#done(),
    })
    this.#shown = { type: 'permission', panel }
  }

  async #openQuestion(request: OpenQuestion): Promise<void> {
    const [{ QuestionDialog }, { PlanDialog, isPlan }] = await Promise.all([
      import('../panels/question-dialog.ts'),
      import('../panels/plan-dialog.ts'),
    ])
    const { theme, now } = this.#options
    const Dialog = isPlan(request) ? PlanDialog : QuestionDialog
    const panel = new Dialog({
      theme,
      request,
      now,
      onAnswer: (requestId, answer) => {
        this.#close()
        this.#answer(requestId, answer)
      },
      onClose: () => this.#done(),
    })
    this.#shown = { type: 'question', requestId: request.requestId, panel }
  }

  async #openResume(runId: string): Promise<void> {
    const { ResumeDialog } = await import('../panels/resume-dialog.ts')
    const handle = this.#options.handle()
    const leave = (): void => {
      this.#later.add(runId)
      this.#close()
    }
    const panel = new ResumeDialog({
      theme: this.#options.theme,
      matters: handle ? openMatters(handle.transcript) : [],
      onResume: () => {
        leave()
        this.#options.onResume()
      },
      onLeave: leave,
      onNewMessage: leave,
    })
    this.#shown = { type: 'resume', runId, panel }
  }

  /** If the request is still open, the user postponed it; otherwise nothing is left to do. */
  #done(): void {
    const shown = this.#shown
    const isPutOff = this.#waiting().some((request) =>
      shown?.type === 'question' ? request.requestId === shown.requestId : !this.#isQuestion(request),
    )
    if (isPutOff) {
      this.postpone()
      this.#options.remarks.say('Your answer is pending. Press Enter with an empty prompt to show it again.', {
        while: () => this.hasPostponed,
      })
    } else this.#close()
    this.sync()
  }

  #answer(requestId: string, answer: RequestAnswer): void {
    this.#answered.add(requestId)
    const handle = this.#options.handle()
    void handle?.answer(requestId, answer).catch((error: unknown) => {
      const said = answeredBy(error)
      if (said !== undefined) return this.#options.remarks.warn(said)
      this.#options.remarks.fail(error)
      this.#answered.delete(requestId)
      this.sync()
    })
  }

  #close(): void {
    this.#shown = undefined
    this.#options.panels.ask(undefined)
    this.#options.onChange()
  }
}

/** Says who answered first. Checks the error by name, so that it loads nothing. */
function answeredBy(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'ProblemError' || !('problem' in error)) return undefined
  const { type, client, option_id: option } = error.problem as Record<string, unknown>
  if (type !== 'already-resolved') return undefined
  const who = typeof client === 'string' ? `by ${harmlessLine(client)}` : 'on another screen'
  const what = typeof option === 'string' ? ` with ${harmlessLine(option)}` : ''
  return `This was already answered ${who}${what}. Your answer had no effect.`
}
