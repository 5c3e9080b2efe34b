/** The styles of every page but the first view, in the order in which one may take back what another says. */
import "uplot/dist/uPlot.min.css";
import "./people.css";
import "./job.css";
import "./box.css";
import "./sharing.css";
import "./compare.css";
