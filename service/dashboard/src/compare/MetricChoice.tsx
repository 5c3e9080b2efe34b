import * as Popover from "@radix-ui/react-popover";

interface Props {
  names: readonly string[];
  chosen: readonly string[];
  onChange: (names: string[]) => void;
}

/** The metrics that have a chart, ticked in a list. */
export function MetricChoice({ names, chosen, onChange }: Props) {
  const shown = names.filter((name) => chosen.includes(name));
  return (
    <Popover.Root>
      <Popover.Trigger className="button small">{shown.length} of {names.length} metrics</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className="popover metric-choice" align="end" sideOffset={4} aria-label="Metrics">
          {names.map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={chosen.includes(name)}
                onChange={({ target }) => (
                  onChange(names.filter((one) => (one === name ? target.checked : chosen.includes(one))))
                )}
              />
              {name}
            </label>
          ))}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
