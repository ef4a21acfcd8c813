import { harmless } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { ChoicePanel } from './choice-panel.ts'

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
