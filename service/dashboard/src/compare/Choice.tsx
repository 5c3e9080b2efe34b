import * as Popover from "@radix-ui/react-popover";

interface Props<Name extends string> {
  /** What is chosen from, and how many of them are. */
  label: string;
  summary: string;
  names: readonly Name[];
  chosen: readonly Name[];
  words?: (name: Name) => string;
  onChange: (names: Name[]) => void;
}

/** Metrics or axes that are shown, ticked in a list. */
export function Choice<Name extends string>({
  label, summary, names, chosen, words = String, onChange,
}: Props<Name>) {
  return (
    <Popover.Root>
      <Popover.Trigger className="button small">{summary}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className="popover metric-choice" align="end" sideOffset={4} aria-label={label}>
          {names.map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={chosen.includes(name)}
                onChange={({ target }) => (
                  onChange(names.filter((one) => (one === name ? target.checked : chosen.includes(one))))
                )}
              />
              {words(name)}
            </label>
          ))}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
