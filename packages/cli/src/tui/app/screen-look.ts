import type { Composer } from '../input/composer.ts'
import { isThemeName, themeNames } from '../theme.ts'
import type { Appearance } from './appearance.ts'
import type { Remarks } from '../chat/remarks.ts'
import type { Look } from '../chat/slash-commands.ts'
import type { TranscriptPane } from './transcript-pane.ts'

export interface ScreenLookOptions {
  appearance: Appearance
  composer: Pick<Composer, 'isVim' | 'setVim'>
  pane: Pick<TranscriptPane, 'toggleDetails'>
  remarks: Remarks
  chooseTheme: () => Promise<void>
  onTheme: () => void
}

export function screenLook({ appearance, composer, pane, remarks, chooseTheme, onTheme }: ScreenLookOptions): Look {
  return {
    async theme(name) {
      if (name === '') return chooseTheme()
      if (!isThemeName(name)) return remarks.warn(`There is no theme ${name}. There are ${themeNames.join(', ')}.`)
      appearance.change(name)
      onTheme()
    },
    vim() {
      composer.setVim(!composer.isVim)
      const { isVim } = composer
      remarks.say(isVim ? 'Keys of vim are on. Esc goes to normal mode.' : 'Keys of vim are off.', {
        while: () => composer.isVim === isVim,
      })
    },
    details: () => pane.toggleDetails(),
  }
}
