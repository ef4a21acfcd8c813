import { harmlessLine, harmless } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { ChoicePanel } from './choice-panel.ts'

interface ResumeDialogOptions {
  theme: Theme
  /** What the run left, one line for each open matter. */
  matters: readonly string[]
  /** Goes on where it was. */
  onResume: () => void
  /** It stays as it is, and can be resumed later. */
  onLeave: () => void
  /** The composer is wanted: what is typed there begins a new run. */
  onNewMessage: () => void
}

type Way = 'resume' | 'leave' | 'message'

/** A run that was interrupted, and what is to be done about it. */
export class ResumeDialog extends ChoicePanel<Way> {
  constructor({ theme, matters, onResume, onLeave, onNewMessage }: ResumeDialogOptions) {
    const take: Record<Way, () => void> = { resume: onResume, leave: onLeave, message: onNewMessage }
    super({
      theme,
      title: 'A run was interrupted',
      intro: [
        matters.length === 0 ? 'Nothing of it is lost.' : 'Nothing of it is lost. What it left:',
        ...matters.map((matter) => `• ${harmlessLine(matter)}`),
        '',
      ],
      choices: [
        { value: 'resume', label: 'Resume', detail: 'it goes on where it was' },
        { value: 'message', label: 'Go on with a new message', detail: 'what is open is closed first' },
        { value: 'leave', label: 'Leave it', detail: 'nothing changes; /resume goes on later' },
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
  /** `Yes` and `No` unless there are better words. */
  yes?: string
  no?: string
  /** Enter alone then means no. */
  isDangerous?: boolean
  onAnswer: (isYes: boolean) => void
}

/** One question with yes or no. Escape is no. */
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
