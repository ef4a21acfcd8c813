import { harmlessLine, harmless } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { ChoicePanel } from './choice-panel.ts'

interface ResumeDialogOptions {
  theme: Theme
  /** What the run left open, one line each. */
  matters: readonly string[]
  /** Resumes the run. */
  onResume: () => void
  /** Leaves the run as it is; it can be resumed later. */
  onLeave: () => void
  /** Returns to the composer: the next message starts a new run. */
  onNewMessage: () => void
}

type Way = 'resume' | 'leave' | 'message'

/** Asks what to do with an interrupted run. */
export class ResumeDialog extends ChoicePanel<Way> {
  constructor({ theme, matters, onResume, onLeave, onNewMessage }: ResumeDialogOptions) {
    const take: Record<Way, () => void> = { resume: onResume, leave: onLeave, message: onNewMessage }
    super({
      theme,
      title: 'A run was interrupted',
      intro: [
        matters.length === 0 ? 'Nothing is lost.' : 'Nothing is lost. Still open:',
        ...matters.map((matter) => `• ${harmlessLine(matter)}`),
        '',
      ],
      choices: [
        { value: 'resume', label: 'Resume', detail: 'continue from the last step' },
        { value: 'message', label: 'Send a new message', detail: 'closes what is open first' },
        { value: 'leave', label: 'Leave it', detail: 'nothing changes; /resume resumes it later' },
      ],
      onChoose: (way) => take[way](),
      onClose: onLeave,
    })
  }
}

interface ConfirmDialogOptions {
  theme: Theme
  title: string
  /** What will happen. */
  text: string
  /** `Yes` and `No` by default. */
  yes?: string
  no?: string
  /** Enter alone then means no. */
  isDangerous?: boolean
  onAnswer: (isYes: boolean) => void
}

/** A yes-or-no question. Escape means no. */
export class ConfirmDialog extends ChoicePanel<boolean> {
  constructor({ theme, title, text, yes = 'Yes', no = 'No', isDangerous = false, onAnswer }: ConfirmDialogOptions) {
    super({
      theme,
      title,
      intro: [harmless(text), ''],
      choices: [
        { value: true, label: yes, key: 'y' },
        { value: false, label: no, key: 'n' },
      ],
      selected: !isDangerous,
      onChoose: onAnswer,
      onClose: () => onAnswer(false),
    })
  }
}
