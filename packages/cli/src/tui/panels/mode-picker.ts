import { modeMeanings, permissionModes, type PermissionMode } from '../../session-choices.ts'
import type { Theme } from '../theme.ts'
import { ChoicePanel } from './choice-panel.ts'

interface ModePickerOptions {
  theme: Theme
  current?: string
  onChoose: (mode: PermissionMode) => void
  onClose: () => void
}

/** What the agent may do without asking. */
export class ModePicker extends ChoicePanel<PermissionMode> {
  constructor({ theme, current, onChoose, onClose }: ModePickerOptions) {
    super({
      theme,
      title: 'Permission mode',
      choices: permissionModes.map((mode) => ({
        value: mode,
        label: mode,
        detail: modeMeanings[mode],
        isCurrent: mode === current,
      })),
      onChoose,
      onClose,
    })
  }
}
