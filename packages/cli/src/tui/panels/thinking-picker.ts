import type { Theme } from '../theme.ts'
import { ChoicePanel } from './choice-panel.ts'

interface ThinkingPickerOptions {
  theme: Theme
  /** Those that the model offers. */
  levels: readonly string[]
  current?: string
  onChoose: (level: string) => void
  onClose: () => void
}

/** How long the model thinks before it answers. */
export class ThinkingPicker extends ChoicePanel<string> {
  constructor({ theme, levels, current, onChoose, onClose }: ThinkingPickerOptions) {
    super({
      theme,
      title: 'Thinking',
      ...(levels.length === 0 && { intro: ['This model has no levels to choose from.'] }),
      choices: levels.map((level) => ({ value: level, label: level, isCurrent: level === current })),
      onChoose,
      onClose,
    })
  }
}
