import type { OfferedModel } from '../../session-source.ts'
import { tokenText } from '../../text/token-text.ts'
import type { Theme } from '../theme.ts'
import { ChoicePanel, type Choice } from './choice-panel.ts'

interface ModelPickerOptions {
  theme: Theme
  models: readonly OfferedModel[]
  /** `provider/id` */
  current?: string
  onChoose: (model: OfferedModel) => void
  onClose: () => void
}

/** Models, found by any letters of their names. Those without a key say how to get one. */
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

/** Those that can be used come first. */
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
