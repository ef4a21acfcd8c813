import { KeybindingsManager, setKeybindings, TUI_KEYBINDINGS } from '@earendil-works/pi-tui'

/** Removes the scroll and find keys of the library, because the screen has its own: each key has one meaning. */
export function installKeybindings(): void {
  const none: [] = []
  setKeybindings(
    new KeybindingsManager(TUI_KEYBINDINGS, {
      'tui.input.newLine': ['shift+enter', 'alt+enter', 'ctrl+j'],
      'tui.editor.cursorRight': ['right'],
      'tui.editor.pageUp': none,
      'tui.editor.pageDown': none,
      'tui.altScreen.pageUp': none,
      'tui.altScreen.pageDown': none,
      'tui.altScreen.previousPrompt': none,
      'tui.altScreen.nextPrompt': none,
      'tui.altScreen.search': none,
      'tui.altScreen.top': none,
      'tui.altScreen.bottom': none,
    }),
  )
}
