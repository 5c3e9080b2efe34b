/**
 * Puts a text on the clipboard; tells whether it is there. Over plain http, where browsers keep the clipboard from
 * pages, it is selected for a moment in a field beside an element: in an open dialog nothing else can be selected.
 */
export async function copyText(text: string, element: HTMLElement): Promise<boolean> {
  if (isSecureContext) return await navigator.clipboard.writeText(text).then(() => true, () => false);
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  element.after(field);
  field.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- what browsers have instead asks for https
  const done = document.execCommand("copy");
  field.remove();
  element.focus();
  return done;
}
