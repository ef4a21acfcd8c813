import { themeNames, type Theme, type ThemeName } from '../theme.ts'
import { ChoicePanel } from './choice-panel.ts'

interface ThemePickerOptions {
  theme: Theme
  current: ThemeName
  /** It is selected, to be looked at; on closing, the one before is wanted back. */
  onPreview?: (name: ThemeName) => void
  onChoose: (name: ThemeName) => void
  onClose: () => void
}

const looks: Record<ThemeName, string> = {
  dark: 'for dark terminals',
  light: 'for light terminals',
  'high-contrast': 'the colours of your terminal, nothing dimmed',
}

export class ThemePicker extends ChoicePanel<ThemeName> {
  constructor({ theme, current, onPreview, onChoose, onClose }: ThemePickerOptions) {
    super({
      theme,
      title: 'Theme',
      choices: themeNames.map((name) => ({
        value: name,
        label: name,
        detail: looks[name],
        isCurrent: name === current,
      })),
      onChoose,
      ...(onPreview && { onMove: onPreview }),
      onClose,
    })
  }
}
