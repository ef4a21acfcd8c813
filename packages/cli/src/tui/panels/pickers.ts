import { modeMeanings, permissionModes, type OfferedModel, type PermissionMode } from '../../session-source.ts'
import { tokenText } from '../../text/amounts.ts'
import { themeNames, type Theme, type ThemeName } from '../theme.ts'
import { ChoicePanel, type Choice } from './choice-panel.ts'

interface ModelPickerOptions {
  theme: Theme
  models: readonly OfferedModel[]
  /** `provider/id` */
  current?: string
  onChoose: (model: OfferedModel) => void
  onClose: () => void
}

/** Models, matched by letters of their names. Models without a key say how to add one. */
export class ModelPicker extends ChoicePanel<OfferedModel> {
  readonly #current: string | undefined

  constructor({ theme, models, current, onChoose, onClose }: ModelPickerOptions) {
    super({ theme, title: 'Model', hasSearch: true, choices: choicesFor(models, current), onChoose, onClose })
    this.#current = current
  }

  update(models: readonly OfferedModel[]): void {
    this.replaceChoices(choicesFor(models, this.#current))
  }
}

/** Usable models come first. */
function choicesFor(models: readonly OfferedModel[], current: string | undefined): Choice<OfferedModel>[] {
  const usable = models.filter(({ isUsable }) => isUsable)
  return [...usable, ...models.filter(({ isUsable }) => !isUsable)].map((model) => ({
    value: model,
    label: model.reference,
    detail: [model.name, contextText(model)].filter(Boolean).join(', '),
    ...(!model.isUsable && { unusable: `no key for ${model.provider}: tapetree login ${model.provider}` }),
    isCurrent: model.reference === current,
  }))
}

function contextText({ contextTokens }: OfferedModel): string {
  return contextTokens === undefined ? '' : `${tokenText(contextTokens)} tokens`
}

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

interface ThemePickerOptions {
  theme: Theme
  current: ThemeName
  /** Called with the selected theme as a preview; on closing, the previous one is restored. */
  onPreview?: (name: ThemeName) => void
  onChoose: (name: ThemeName) => void
  onClose: () => void
}

const looks: Record<ThemeName, string> = {
  dark: 'for dark terminals',
  light: 'for light terminals',
  'high-contrast': 'the colors of your terminal, nothing dimmed',
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

interface ThinkingPickerOptions {
  theme: Theme
  /** The levels that the model supports. */
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
      ...(levels.length === 0 && { intro: ['This model has no thinking levels.'] }),
      choices: levels.map((level) => ({ value: level, label: level, isCurrent: level === current })),
      onChoose,
      onClose,
    })
  }
}
